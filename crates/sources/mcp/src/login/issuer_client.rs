//! Sends requests to issuers and servers, with limits and address checks, and parses the responses as JSON objects.

use std::time::Duration;

use helve_core::json::{self, JsonLimits};
use helve_core::{Redactor, printable};
use helve_fetch::{Fetch, FetchLimits, HeaderValue, Method, Request, Response, StatusCode, Url, header};
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::address::{AddressGuard, origin};
use super::error::AuthError;

/// Limits of requests for metadata. They follow redirects, because metadata may have moved.
const READ_LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(20), bytes: 64 << 10, redirects: 2 };
/// Limits of requests with codes or secrets. They do not follow redirects.
const WRITE_LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(20), bytes: 64 << 10, redirects: 0 };
const JSON: JsonLimits = JsonLimits { bytes: 64 << 10, depth: 32, nodes: 5_000 };
/// Maximum number of characters of an issuer's text in an error.
const REASON: usize = 300;

/// A JSON object.
pub(super) type Object = Map<String, Value>;

/// Sends the requests for the login at one server.
#[derive(Clone)]
pub(super) struct IssuerClient {
    pub(super) fetch: Fetch,
    pub(super) redactor: Redactor,
    pub(super) guard: AddressGuard,
}

impl IssuerClient {
    /// Requests a JSON object. Returns `None` if there is none at this URL, so that the caller tries other URLs. Fails on a server error.
    pub(super) async fn get(&self, url: &Url) -> Result<Option<Object>, AuthError> {
        let mut request = Request::new(Method::GET, url.clone());
        request.limits = READ_LIMITS;
        let response = self.send(request).await?;
        if response.status.is_server_error() || response.status == StatusCode::TOO_MANY_REQUESTS {
            let reason = format!("{} responded with status {}", origin(url), response.status.as_u16());
            return Err(AuthError::discovery(self.guard.server(), reason));
        }
        // Some sites respond to every URL with a page.
        Ok(if response.status.is_success() { object(&response) } else { None })
    }

    /// Posts a JSON object.
    pub(super) async fn post_json(&self, url: &Url, body: &Value) -> Result<Response, AuthError> {
        let mut request = Request::new(Method::POST, url.clone());
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.body = Some(body.to_string().into_bytes());
        request.limits = WRITE_LIMITS;
        self.send(request).await
    }

    /// Posts a URL-encoded form.
    pub(super) async fn post_form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        authorization: Option<HeaderValue>,
    ) -> Result<Response, AuthError> {
        let mut request = Request::new(Method::POST, url.clone());
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        if let Some(authorization) = authorization {
            request.headers.insert(header::AUTHORIZATION, authorization);
        }
        request.body = Some(form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into_bytes());
        request.limits = WRITE_LIMITS;
        self.send(request).await
    }

    /// Adds secrets to the redactor.
    pub(super) fn hide(&self, secrets: impl IntoIterator<Item = SecretString>) {
        self.redactor.add(secrets);
    }

    /// Redacts untrusted text, escapes it to one line, and shortens it.
    pub(super) fn excerpt(&self, text: &str) -> String {
        let clean = self.redactor.clean(text);
        printable::shorten_words(&printable::escape_line(clean.as_deref().unwrap_or(text)), REASON)
    }

    /// Returns the OAuth error code and the description in an error response, or `None` if the response is a success.
    pub(super) fn refusal(&self, response: &Response) -> Option<(String, String)> {
        let object = object(response).unwrap_or_default();
        let field = |name: &str| object.get(name).and_then(Value::as_str).map(|text| self.excerpt(text));
        match field("error") {
            Some(code) => {
                let reason = field("error_description").map_or_else(|| code.clone(), |text| format!("{code}: {text}"));
                Some((code, reason))
            }
            None if response.status.is_success() => None,
            None => Some((String::new(), format!("it responded with status {}", response.status.as_u16()))),
        }
    }

    async fn send(&self, mut request: Request) -> Result<Response, AuthError> {
        request.reach = self.guard.reach(&request.url);
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        Ok(self.fetch.send(request).await?)
    }
}

/// Parses the body of a response as a JSON object.
pub(super) fn object(response: &Response) -> Option<Object> {
    match json::parse(&response.body, JSON) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}
