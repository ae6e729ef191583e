//! The requests and responses of [`Fetch`](crate::Fetch).

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode, Url};

use crate::address::Reach;

/// A request. In addition to `headers`, the client sends only a user agent and the headers that HTTP requires.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// The HTTP method.
    pub method: Method,
    /// The URL. Use [`crate::read_url`] to parse a URL that a person or a model wrote.
    pub url: Url,
    /// The request headers. After a redirect to another scheme, host or port, only `accept`, `accept-language` and `content-type` are
    /// sent, so no credentials leak.
    pub headers: HeaderMap,
    /// The request body, if any.
    pub body: Option<Vec<u8>>,
    /// Which addresses the request may reach.
    pub reach: Reach,
    /// Limits on time, size and redirects.
    pub limits: FetchLimits,
}

impl Request {
    /// Creates a request without headers and body that may reach only public addresses, with default limits.
    #[must_use]
    pub fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: None, reach: Reach::Public, limits: FetchLimits::default() }
    }
}

/// The limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Timeout for the whole request: DNS lookup, connections, redirects and the response.
    pub time: Duration,
    /// Maximum size of the response body, in bytes.
    pub bytes: u64,
    /// Maximum number of redirects.
    pub redirects: u8,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), bytes: 1 << 20, redirects: 5 }
    }
}

/// A complete response.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response {
    /// The HTTP status code.
    pub status: StatusCode,
    /// The response headers.
    pub headers: HeaderMap,
    /// The body as the server sent it, not decompressed.
    pub body: Vec<u8>,
    /// Whether the body was cut off at the size limit. Only error responses are cut off; a successful response that is too large is
    /// [`FetchError::TooLarge`](crate::FetchError::TooLarge).
    pub truncated: bool,
    /// The URL of the response, after all redirects.
    pub url: Url,
}

impl Response {
    /// Returns the value of a header, or `None` if the header is absent or contains non-ASCII characters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
