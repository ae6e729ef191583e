//! Requests for streamed responses: a [`Target`], which is prepared once, and an [`Exchange`] for each request.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use reqwest::header::{ACCEPT_ENCODING, HOST, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Method, Url};

use crate::address::{self, Reach};
use crate::error::FetchError;

/// The URL of requests and the headers that all of them share.
#[derive(Debug, Clone)]
pub struct Target {
    pub(crate) url: Url,
    pub(crate) origin: String,
    pub(crate) reach: Reach,
    path: Uri,
    headers: HeaderMap,
}

impl Target {
    pub(crate) fn new(url: &Url, headers: &HeaderMap, reach: Reach, user_agent: &str) -> Result<Self, FetchError> {
        address::check_form(url)?;
        address::check_reach(url, reach)?;
        let bad = |reason: &dyn std::fmt::Display| FetchError::BadUrl { reason: reason.to_string() };
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let mut headers = headers.clone();
        headers.insert(HOST, HeaderValue::from_str(&host).map_err(|error| bad(&error))?);
        headers.insert(USER_AGENT, HeaderValue::from_str(user_agent).map_err(|error| bad(&error))?);
        // Responses are not decompressed, so a small response cannot expand into a large one.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(Self { url: url.clone(), origin: address::origin(url), path: path.parse().map_err(|error| bad(&error))?, headers, reach })
    }
}

/// One request to a [`Target`].
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The HTTP method.
    pub method: Method,
    /// Headers of this request only. They replace headers of the target with the same name.
    pub headers: HeaderMap,
    /// The request body.
    pub body: Bytes,
    /// Whether the client may send the request again if a reused connection breaks. In that case the client cannot know whether the
    /// server has received the request.
    pub may_repeat: bool,
}

impl Exchange {
    /// Creates a `POST` request without additional headers that may be sent again.
    #[must_use]
    pub fn post(body: Bytes) -> Self {
        Self { method: Method::POST, headers: HeaderMap::new(), body, may_repeat: true }
    }

    pub(crate) fn request(&self, target: &Target) -> hyper::Request<Full<Bytes>> {
        let mut request = hyper::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = target.path.clone();
        *request.headers_mut() = target.headers.clone();
        request.headers_mut().extend(self.headers.clone());
        request
    }
}
