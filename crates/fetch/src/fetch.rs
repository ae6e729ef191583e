//! [`Fetch`], the client that sends a request, follows redirects, and reads the whole response within limits.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, HeaderValue};

use crate::address;
use crate::client::Clients;
use crate::error::FetchError;
use crate::lookup::{Lookup, SystemLookup};
use crate::redirect::Hop;
use crate::request::{FetchLimits, Request, Response};

/// Maximum number of bytes that are read of an error response.
const ERROR_BYTES: u64 = 64 << 10;

/// The options of a [`Fetch`] or a [`ConnectionPool`](crate::ConnectionPool).
#[derive(Clone)]
pub struct FetchOptions {
    /// Timeout for opening a connection.
    pub connect_timeout: Duration,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The DNS resolver.
    pub lookup: Arc<dyn Lookup>,
}

impl fmt::Debug for FetchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("FetchOptions");
        shown.field("connect_timeout", &self.connect_timeout).field("user_agent", &self.user_agent).finish_non_exhaustive()
    }
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            user_agent: concat!("helve/", env!("CARGO_PKG_VERSION")).to_owned(),
            lookup: Arc::new(SystemLookup),
        }
    }
}

/// An HTTP client for small responses. Cheap to clone; clones share connections.
#[derive(Clone, Default)]
pub struct Fetch(Arc<Inner>);

#[derive(Default)]
struct Inner {
    options: FetchOptions,
    /// The reqwest clients. They are created on first use, because reading the certificates of a machine is slow.
    clients: OnceLock<Result<Clients, String>>,
}

impl Fetch {
    /// Creates a client.
    #[must_use]
    pub fn new(options: FetchOptions) -> Self {
        Self(Arc::new(Inner { options, clients: OnceLock::new() }))
    }

    /// Returns whether two clients are clones of each other and share their connections.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sends a request, follows redirects and reads the whole response. Returns `Ok` for every HTTP status, also for errors such as 404.
    ///
    /// Dropping the future closes the connection.
    ///
    /// # Errors
    /// Returns an error if the URL is not allowed, if the request fails, or if a limit is exceeded.
    pub async fn send(&self, request: Request) -> Result<Response, FetchError> {
        let (limits, url) = (request.limits, request.url.clone());
        match tokio::time::timeout(limits.time, self.follow(request)).await {
            Ok(result) => result,
            Err(_) => Err(FetchError::Timeout { origin: address::origin(&url), after: limits.time }),
        }
    }

    async fn follow(&self, request: Request) -> Result<Response, FetchError> {
        let (limits, origin) = (request.limits, address::origin(&request.url));
        let mut hop = Hop::first(request)?;
        for _ in 0..=limits.redirects {
            let response = self.exchange(&hop).await?;
            match hop.next(response.status(), response.headers())? {
                Some(next) => hop = next,
                None => return read(response, &hop, limits).await,
            }
        }
        Err(FetchError::TooManyRedirects { origin, limit: limits.redirects })
    }

    async fn exchange(&self, hop: &Hop) -> Result<reqwest::Response, FetchError> {
        let clients = self.0.clients.get_or_init(|| Clients::new(&self.0.options));
        let clients = clients.as_ref().map_err(|reason| FetchError::Setup { reason: reason.clone() })?;
        let mut headers = hop.headers.clone();
        // Responses are not decompressed, so a small response cannot expand into a large one.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let mut request = clients.get(hop.reach).request(hop.method.clone(), hop.url.clone()).headers(headers);
        if let Some(body) = &hop.body {
            request = request.body(body.clone());
        }
        request.send().await.map_err(|error| FetchError::of(&error, &hop.url))
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetch")
    }
}

/// Reads a response. The size limit applies to the bytes that arrive; a `Content-Length` header can only make it fail earlier.
async fn read(mut response: reqwest::Response, hop: &Hop, limits: FetchLimits) -> Result<Response, FetchError> {
    let success = response.status().is_success();
    let limit = if success { limits.bytes } else { limits.bytes.min(ERROR_BYTES) };
    let too_large = || FetchError::TooLarge { origin: address::origin(&hop.url), limit };
    if success && response.content_length().is_some_and(|announced| announced > limit) {
        return Err(too_large());
    }
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    let mut body = Vec::new();
    let mut truncated = false;
    while let Some(chunk) = response.chunk().await.map_err(|error| FetchError::of(&error, &hop.url))? {
        let room = usize::try_from(limit).unwrap_or(usize::MAX) - body.len();
        if chunk.len() > room {
            if success {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk[..room]);
            truncated = true;
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response { status, headers, body, truncated, url: hop.url.clone() })
}
