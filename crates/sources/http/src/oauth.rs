//! OAuth 2 access tokens for the client credentials grant. A token is requested on first use, by one call at a time, and cached until
//! shortly before it expires.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use helve_core::authored::{FieldError, Secret};
use helve_core::json::{self, JsonLimits};
use helve_core::{Redactor, ToolError};
use helve_fetch::{Fetch, FetchLimits, HeaderValue, Method, Reach, Request, Url, header};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::address::read_base;
use crate::auth::basic;
use crate::failure;
use crate::form;

const SCHEME: &str = "Bearer ";
/// Lifetime of a token if the server does not specify one.
const DEFAULT_LIFETIME: Duration = Duration::from_mins(5);
/// How long before its expiry a token is renewed. At most a tenth of the lifetime is used.
const MARGIN: Duration = Duration::from_mins(1);
/// Limits of token requests. Redirects are not followed, because they could leak tokens or client secrets.
const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(20), bytes: 64 << 10, redirects: 0 };

/// A cache for the access token of one OAuth 2 client.
pub(crate) struct TokenCache {
    url: Url,
    client_id: String,
    client_secret: Secret,
    scope: String,
    fetch: Fetch,
    /// A semaphore that the call which requests a token holds. Other calls wait for the semaphore.
    turn: Semaphore,
    token: Mutex<Option<Token>>,
}

struct Token {
    header: HeaderValue,
    valid_until: Instant,
}

impl TokenCache {
    /// Returns the token cache of a client. All tools of a client share a cache, because an OpenAPI import may have a thousand tools.
    pub(crate) fn shared(
        token_url: &str,
        client_id: &str,
        client_secret: &Secret,
        scope: &str,
        fetch: &Fetch,
    ) -> Result<Arc<Self>, FieldError> {
        static KNOWN: Mutex<Vec<Weak<TokenCache>>> = Mutex::new(Vec::new());
        let url = read_base(token_url, "/auth_method/token_url")?;
        let mut known = KNOWN.lock();
        known.retain(|tokens| tokens.strong_count() > 0);
        let same = |tokens: &Arc<Self>| {
            (&tokens.url, tokens.client_id.as_str(), tokens.client_secret.expose(), tokens.scope.as_str())
                == (&url, client_id, client_secret.expose(), scope)
                && tokens.fetch.is_same(fetch)
        };
        if let Some(tokens) = known.iter().filter_map(Weak::upgrade).find(same) {
            return Ok(tokens);
        }
        let tokens = Arc::new(Self {
            url,
            client_id: client_id.to_owned(),
            client_secret: client_secret.clone(),
            scope: scope.to_owned(),
            fetch: fetch.clone(),
            turn: Semaphore::new(1),
            token: Mutex::default(),
        });
        known.push(Arc::downgrade(&tokens));
        Ok(tokens)
    }

    /// Returns the `Authorization` header for a valid token other than `refused`. Requests a token if needed, and adds it to the redactor.
    pub(crate) async fn get(&self, refused: Option<&HeaderValue>, redactor: &Redactor) -> Result<HeaderValue, ToolError> {
        let header = match self.cached(refused) {
            Some(header) => header,
            None => self.renew(refused, redactor).await?,
        };
        // Tools that share a token cache may have different redactors.
        if let Some(token) = header.to_str().ok().and_then(|text| text.strip_prefix(SCHEME))
            && redactor.clean(token).is_none()
        {
            redactor.add([token.to_owned().into()]);
        }
        Ok(header)
    }

    async fn renew(&self, refused: Option<&HeaderValue>, redactor: &Redactor) -> Result<HeaderValue, ToolError> {
        let _turn = self.turn.acquire().await;
        // Another call may have renewed the token in the meantime.
        if let Some(header) = self.cached(refused) {
            return Ok(header);
        }
        let token = self.request_token(redactor).await?;
        let header = token.header.clone();
        *self.token.lock() = Some(token);
        Ok(header)
    }

    fn cached(&self, refused: Option<&HeaderValue>) -> Option<HeaderValue> {
        let token = self.token.lock();
        let valid = |token: &&Token| token.valid_until > Instant::now() && Some(&token.header) != refused;
        token.as_ref().filter(valid).map(|token| token.header.clone())
    }

    async fn request_token(&self, redactor: &Redactor) -> Result<Token, ToolError> {
        // RFC 6749 requires servers to accept the credentials in a header, but some accept them only in the body.
        let response = self.fetch.send(self.request(true)).await.map_err(failure::of_fetch)?;
        let response = match response.status.as_u16() {
            400 | 401 => self.fetch.send(self.request(false)).await.map_err(failure::of_fetch)?,
            _ => response,
        };
        if !response.status.is_success() {
            return Err(failure::of_status(&response, &[], redactor).with("step", "token".into()));
        }
        let body = json::parse(&response.body, JsonLimits::ARGUMENTS).unwrap_or_default();
        read_token(&body).ok_or_else(|| {
            let host = response.url.host_str().unwrap_or("the server");
            ToolError::failed(format!("the token response of {host} contains no usable `access_token`")).with("step", "token".into())
        })
    }

    fn request(&self, in_header: bool) -> Request {
        let mut fields = vec![("grant_type", "client_credentials")];
        if !self.scope.is_empty() {
            fields.push(("scope", &self.scope));
        }
        let mut request = Request::new(Method::POST, self.url.clone());
        request.reach = Reach::Any;
        request.limits = LIMITS;
        if in_header {
            let pair = basic(&form::encoded(&self.client_id), &form::encoded(self.client_secret.expose()));
            // Base64 is always a valid header value.
            if let Ok(value) = HeaderValue::try_from(format!("Basic {pair}")) {
                request.headers.insert(header::AUTHORIZATION, value);
            }
        } else {
            fields.extend([("client_id", self.client_id.as_str()), ("client_secret", self.client_secret.expose())]);
        }
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        request.body = Some(form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into_bytes());
        request
    }
}

fn read_token(body: &Value) -> Option<Token> {
    let token = body.get("access_token")?.as_str().filter(|token| !token.is_empty())?;
    let mut header = HeaderValue::try_from(format!("{SCHEME}{token}")).ok()?;
    header.set_sensitive(true);
    let life = body.get("expires_in").and_then(|life| life.as_u64().or_else(|| life.as_str()?.parse().ok()));
    let life = life.map_or(DEFAULT_LIFETIME, Duration::from_secs);
    let valid_until = Instant::now().checked_add(life.saturating_sub(MARGIN.min(life / 10))).unwrap_or_else(Instant::now);
    Some(Token { header, valid_until })
}
