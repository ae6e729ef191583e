//! Exchanges with issuers and servers: bounded, checked, and read as JSON objects.

use std::time::Duration;

use helve_core::json::{self, JsonLimits};
use helve_core::{Redactor, printable};
use helve_fetch::{Fetch, FetchLimits, HeaderValue, Method, Request, Response, StatusCode, Url, header};
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::address::{Guard, origin};
use super::error::AuthError;

/// Metadata may have moved.
const READING: FetchLimits = FetchLimits { time: Duration::from_secs(20), bytes: 64 << 10, redirects: 2 };
/// Neither codes nor secrets are carried along redirects.
const TELLING: FetchLimits = FetchLimits { time: Duration::from_secs(20), bytes: 64 << 10, redirects: 0 };
const JSON: JsonLimits = JsonLimits { bytes: 64 << 10, depth: 32, nodes: 5_000 };
/// What a stranger says about an error is shown this far.
const REASON: usize = 300;

/// An object of JSON.
pub(super) type Object = Map<String, Value>;

/// What all exchanges for one server share.
#[derive(Clone)]
pub(super) struct Exchange {
    pub(super) fetch: Fetch,
    pub(super) redactor: Redactor,
    pub(super) guard: Guard,
}

impl Exchange {
    /// Reads an object; nothing where there is none. A server that fails is not one that has nothing: what is believed
    /// to be absent is looked for elsewhere.
    pub(super) async fn get(&self, url: &Url) -> Result<Option<Object>, AuthError> {
        let mut request = Request::new(Method::GET, url.clone());
        request.limits = READING;
        let response = self.send(request).await?;
        if response.status.is_server_error() || response.status == StatusCode::TOO_MANY_REQUESTS {
            let reason = format!("{} answers with status {}", origin(url), response.status.as_u16());
            return Err(AuthError::discovery(self.guard.server(), reason));
        }
        // Sites that answer every address with a page are common.
        Ok(if response.status.is_success() { object(&response) } else { None })
    }

    /// Sends an object.
    pub(super) async fn post_json(&self, url: &Url, body: &Value) -> Result<Response, AuthError> {
        let mut request = Request::new(Method::POST, url.clone());
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.body = Some(body.to_string().into_bytes());
        request.limits = TELLING;
        self.send(request).await
    }

    /// Sends a form.
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
        request.limits = TELLING;
        self.send(request).await
    }

    /// Tells the redactor about secrets.
    pub(super) fn hide(&self, secrets: impl IntoIterator<Item = SecretString>) {
        self.redactor.add(secrets);
    }

    /// What a stranger says, fit to be shown: one short line without secrets.
    pub(super) fn said(&self, text: &str) -> String {
        let clean = self.redactor.clean(text);
        printable::shorten_words(&printable::escape_line(clean.as_deref().unwrap_or(text)), REASON)
    }

    /// The error code of an answer that is a refusal, and what it says.
    pub(super) fn refusal(&self, response: &Response) -> Option<(String, String)> {
        let object = object(response).unwrap_or_default();
        let field = |name: &str| object.get(name).and_then(Value::as_str).map(|text| self.said(text));
        match field("error") {
            Some(code) => {
                let reason = field("error_description").map_or_else(|| code.clone(), |text| format!("{code}: {text}"));
                Some((code, reason))
            }
            None if response.status.is_success() => None,
            None => Some((String::new(), format!("its answer has status {}", response.status.as_u16()))),
        }
    }

    async fn send(&self, mut request: Request) -> Result<Response, AuthError> {
        request.reach = self.guard.reach(&request.url);
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        Ok(self.fetch.send(request).await?)
    }
}

/// The object that an answer is.
pub(super) fn object(response: &Response) -> Option<Object> {
    match json::parse(&response.body, JSON) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}
