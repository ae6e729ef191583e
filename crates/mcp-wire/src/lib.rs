//! The messages of the Model Context Protocol: JSON-RPC, versions and eras, pagination, headers, and the protocol's objects. This crate
//! does no I/O.
//!
//! The objects keep unknown fields, so that a gateway forwards these fields unchanged.

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
