//! HTTP for every edge of Helve, with limits on reach, size and time.
//!
//! There are two clients, and both check addresses by the same rules ([`Reach`]):
//! - [`Fetch`] reads a whole response and follows redirects, checking every hop from the start. It runs on reqwest. Use it for
//!   requests whose responses are small: tools, documents, tokens.
//! - [`ConnectionPool`] hands over a [`StreamingResponse`] as soon as its head is there and follows no redirects. It runs on hyper,
//!   and the reader of a response drives its connection. Use it for long streams: models and MCP servers.
//!
//! Neither reads a proxy from the environment, stores cookies or decompresses anything.

mod address;
mod client;
mod connection;
mod error;
mod events;
mod fetch;
mod lookup;
mod networks;
mod pool;
mod redirect;
mod request;
mod streaming;
mod target;

pub use address::{Reach, Refusal, read_url};
pub use bytes::Bytes;
pub use error::FetchError;
pub use events::{EventError, EventSink, Events};
pub use fetch::{Fetch, FetchOptions};
pub use lookup::{Lookup, SystemLookup};
pub use pool::ConnectionPool;
pub use request::{FetchLimits, Request, Response};
pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode, Url};
pub use streaming::{StreamLimits, StreamingResponse};
pub use target::{Exchange, Target};
