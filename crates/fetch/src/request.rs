//! What is asked and what comes back.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode, Url};

use crate::address::Reach;

/// One request. There are no other headers than these, a user agent and the ones that HTTP itself needs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// What to do.
    pub method: Method,
    /// With what; [`crate::read_url`] reads what people write.
    pub url: Url,
    /// Headers. When a redirect leads to another scheme, host or port, only `accept`, `accept-language` and
    /// `content-type` go along, so no credential does.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// Who may be reached.
    pub reach: Reach,
    /// How much is waited for and read.
    pub limits: FetchLimits,
}

impl Request {
    /// A request without headers and body, to the public internet.
    #[must_use]
    pub fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: None, reach: Reach::Public, limits: FetchLimits::default() }
    }
}

/// How much is waited for and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// The time for everything: names, connections, redirects, the response to its last byte.
    pub time: Duration,
    /// The bytes of a response.
    pub bytes: u64,
    /// How many redirects are followed.
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
    /// The body as it was sent: nothing is unpacked.
    pub body: Vec<u8>,
    /// Whether only the beginning of the body was read. That is so only for answers that are no success, where the
    /// status matters more than the rest of the text; a success that is too large is an error.
    pub truncated: bool,
    /// Where the response came from after all redirects.
    pub url: Url,
}

impl Response {
    /// A header as text, where it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
