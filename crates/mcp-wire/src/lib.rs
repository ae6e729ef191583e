//! The Model Context Protocol as messages: what is said, in which era, and how lists come in pages. Nothing here reads or waits.

mod era;
mod headers;
mod message;
mod pages;
mod probe;

pub use era::{CODES, Codes, Era, META, MetaKeys, VERSIONS};
pub use headers::{BadHeaderParam, HEADERS, HeaderNames, HeaderParam, decode_header, encode_header, name_of};
pub use message::{Message, NotAMessage, RequestId, RpcError};
pub use pages::{PageLimits, PageTrouble, Pages};
pub use probe::{Heard, Probe, Verdict};
