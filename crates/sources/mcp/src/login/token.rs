//! Exchanges a code or a refresh token for tokens, at the token endpoint of an issuer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use helve_core::Timestamp;
use helve_fetch::{HeaderValue, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::error::AuthError;
use super::issuer_client::{IssuerClient, object};
use super::store::{Client, ClientAuth, Login, Tokens};

/// Maximum length of a token in bytes, because the redactor cannot hide longer ones.
const LONGEST: usize = 16 << 10;
/// Maximum lifetime of a token in seconds (a century). A longer lifetime counts as unlimited.
const LONGEST_LIFE: i64 = 100 * 365 * 24 * 3600;

/// An authorization code and its PKCE verifier.
pub(super) struct CodeGrant<'a> {
    pub(super) code: &'a SecretString,
    pub(super) verifier: &'a SecretString,
}

/// Exchanges an authorization code for tokens. `login` contains the endpoint and the client.
pub(super) async fn redeem(exchange: &IssuerClient, login: &Login, purchase: &CodeGrant<'_>) -> Result<Tokens, AuthError> {
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", purchase.code.expose_secret()),
        ("code_verifier", purchase.verifier.expose_secret()),
        ("redirect_uri", &login.client.redirect_uri),
        ("resource", &login.resource),
    ];
    ask(exchange, login, &fields).await
}

/// Exchanges a refresh token for new tokens. Keeps the old refresh token if the issuer returns no new one.
pub(super) async fn refresh(exchange: &IssuerClient, login: &Login) -> Result<Tokens, AuthError> {
    let Some(refresh) = login.refresh() else {
        return Err(AuthError::response(&login.issuer, "there is no refresh token"));
    };
    let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose_secret()), ("resource", &login.resource)];
    let mut tokens = ask(exchange, login, &fields).await?;
    tokens.refresh = tokens.refresh.or_else(|| Some(refresh.clone()));
    Ok(tokens)
}

async fn ask(exchange: &IssuerClient, login: &Login, fields: &[(&str, &str)]) -> Result<Tokens, AuthError> {
    // Checks the endpoint again, because another version of Helve may have stored it.
    let url: Url = exchange.guard.read(&login.token_endpoint, "token endpoint")?;
    let Client { id, secret, proof, .. } = &login.client;
    let mut fields = fields.to_vec();
    let mut authorization = None;
    match (proof, secret) {
        (ClientAuth::Basic, Some(secret)) => authorization = Some(basic(id, secret)),
        (ClientAuth::Post, Some(secret)) => fields.extend([("client_id", id.as_str()), ("client_secret", secret.expose_secret())]),
        (ClientAuth::None, _) => fields.push(("client_id", id)),
        (ClientAuth::Basic | ClientAuth::Post, None) => {
            return Err(AuthError::registration(&login.issuer, "the client's secret is missing"));
        }
    }
    let response = exchange.post_form(&url, &fields, authorization.flatten()).await?;
    if let Some((code, reason)) = exchange.refusal(&response) {
        return Err(AuthError::Refused { issuer: login.issuer.clone(), code, reason });
    }
    let tokens = read_tokens(&response, Timestamp::now()).map_err(|reason| AuthError::response(&login.issuer, reason))?;
    exchange.hide(std::iter::once(&tokens.access).chain(&tokens.refresh).cloned());
    Ok(tokens)
}

/// Returns the header for HTTP Basic authentication of a client. Form-encodes both parts before joining them (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &SecretString) -> Option<HeaderValue> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret.expose_secret()));
    let mut header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

fn read_tokens(response: &Response, now: Timestamp) -> Result<Tokens, &'static str> {
    let response = object(response).ok_or("it is not a JSON object")?;
    let text = |field: &str| response.get(field).and_then(Value::as_str);
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err("the token type is not supported");
    }
    let secret = |field: &str| text(field).filter(|token| (1..=LONGEST).contains(&token.len())).map(str::to_owned);
    let access = secret("access_token").ok_or("it has no token")?;
    let life = response.get("expires_in").and_then(|life| life.as_i64().or_else(|| life.as_str()?.parse().ok()));
    let life = life.filter(|life| (0..LONGEST_LIFE).contains(life));
    let tokens = Tokens {
        access: access.into(),
        refresh: secret("refresh_token").map(Into::into),
        issued: now,
        expires: life.and_then(|life| Timestamp::from_second(now.as_second().saturating_add(life)).ok()),
    };
    if tokens.header().is_none() {
        return Err("the token is not a valid header value");
    }
    Ok(tokens)
}
