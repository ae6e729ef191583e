//! HTTP clients for the other crates of Helve, with limits on addresses, size and time.
//!
//! There are two clients, and both check addresses by the same rules ([`Reach`]):
//! - [`Fetch`] reads a whole response and follows redirects; it checks the address of every hop. It uses reqwest. Use it for
//!   small responses: tools, documents, tokens.
//! - [`ConnectionPool`] returns a [`StreamingResponse`] as soon as the headers have arrived, and does not follow redirects. It uses
//!   hyper, and reading a response also polls its connection. Use it for long streams: models and MCP servers.
//!
//! Neither client uses a proxy from the environment, stores cookies or decompresses responses.

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
