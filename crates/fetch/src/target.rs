//! What goes to a server: the target, prepared once, and each exchange with it.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use reqwest::header::{ACCEPT_ENCODING, HOST, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Method, Url};

use crate::address::{self, Reach};
use crate::error::FetchError;

/// Where requests go, and the headers of each.
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
        // Nothing is decompressed, so a small response cannot become a large one.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(Self { url: url.clone(), origin: address::origin(url), path: path.parse().map_err(|error| bad(&error))?, headers, reach })
    }
}

/// One request to a target.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The method.
    pub method: Method,
    /// Headers of this request only; they replace those of the target.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whether the server may receive the request twice. An idle connection may break just as it is reused, and then the client
    /// cannot know whether the request arrived.
    pub may_repeat: bool,
}

impl Exchange {
    /// A `POST` that may be repeated.
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
