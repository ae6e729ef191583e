//! The guarded HTTP fetch that every edge uses: bounded in size, time and redirects.
//!
//! It reads no proxy from the environment, keeps no cookies and unpacks nothing. Who may be reached is data:
//! [`Reach`]. Redirects are followed by hand, and every hop is checked from the start.

mod address;
mod client;
mod error;
mod events;
mod fetch;
mod line;
mod lookup;
mod networks;
mod redirect;
mod request;

pub use address::{Reach, Refusal, read_url};
pub use bytes::Bytes;
pub use error::FetchError;
pub use events::{EventError, EventSink, Events};
pub use fetch::{Fetch, FetchOptions};
pub use line::{Answer, Exchange, Lines, Patience, Target};
pub use lookup::{Lookup, SystemLookup};
pub use networks::is_public;
pub use request::{Limits, Request, Response};
pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode, Url};
