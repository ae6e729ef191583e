//! The requests and responses of [`Fetch`](crate::Fetch).

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode, Url};

use crate::address::Reach;

/// One request. Besides its own headers it has only a user agent and those that HTTP itself needs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The URL; [`crate::read_url`] parses what people write.
    pub url: Url,
    /// Headers. When a redirect leads to another scheme, host or port, only `accept`, `accept-language` and
    /// `content-type` go along, so no credential does.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// Which addresses may be reached.
    pub reach: Reach,
    /// Limits of time and size.
    pub limits: FetchLimits,
}

impl Request {
    /// A request without headers and body, to the public internet.
    #[must_use]
    pub fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: None, reach: Reach::Public, limits: FetchLimits::default() }
    }
}

/// Limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Timeout for everything: DNS lookup, connections, redirects and the whole response.
    pub time: Duration,
    /// Maximum number of bytes of a response.
    pub bytes: u64,
    /// Maximum number of redirects.
    pub redirects: u8,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), bytes: 1 << 20, redirects: 5 }
    }
}

/// One response, read to its end.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it was sent: nothing is decompressed.
    pub body: Vec<u8>,
    /// Whether only the beginning of the body was read. This happens only to error responses, whose status matters more than the
    /// rest of the text; a success that is too large is an error.
    pub truncated: bool,
    /// The URL of the response, after all redirects.
    pub url: Url,
}

impl Response {
    /// Returns a header; `None` if it is absent or not text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
