//! The Model Context Protocol as messages: JSON-RPC, versions and eras, pages, headers, and the protocol's objects. No I/O happens here.
//!
//! The objects keep fields that they do not know, so a gateway passes them on unchanged.

mod change;
mod era;
mod headers;
mod input;
mod message;
mod meta;
mod pages;
mod probe;
mod result;

pub use change::Change;
pub use era::{CODES, Codes, Era, VERSIONS};
pub use headers::{HEADERS, HeaderNames, HeaderParam, HeaderParamError, decode_header, encode_header, name_of};
pub use input::{InputRequired, InputResponses, ServerRequest};
pub use message::{Message, MessageError, RequestId, RpcError};
pub use meta::{META, Meta, MetaKeys};
pub use pages::{PageError, PageLimits, Pages};
pub use probe::{Probe, ProbeOutcome, ProbeResponse};
pub use result::{ResultType, ToolResult};
