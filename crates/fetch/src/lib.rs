//! The guarded HTTP fetch that every edge uses: bounded in size, time and redirects.
//!
//! It reads no proxy from the environment, keeps no cookies and unpacks nothing. Who may be reached is data:
//! [`Reach`]. Redirects are followed by hand, and every hop is checked from the start.

mod address;
mod client;
mod connection;
mod error;
mod events;
mod fetch;
mod lookup;
mod networks;
mod redirect;
mod request;

pub use address::{Reach, Refusal, read_url};
pub use bytes::Bytes;
pub use connection::{ConnectionPool, Exchange, Patience, StreamingResponse, Target};
pub use error::FetchError;
pub use events::{EventError, EventSink, Events};
pub use fetch::{Fetch, FetchOptions};
pub use lookup::{Lookup, SystemLookup};
pub use networks::is_public;
pub use request::{FetchLimits, Request, Response};
pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode, Url};
