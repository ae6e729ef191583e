//! Selects the OAuth client for an issuer: a configured one, one with a metadata document, or a dynamically registered one (RFC 7591).

use helve_core::Timestamp;
use helve_fetch::{Response, read_url};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::discovery::Issuer;
use super::error::AuthError;
use super::issuer_client::{IssuerClient, Object, object};
use super::options::{AuthOptions, RegisteredClient};
use super::store::{Client, ClientAuth, ClientOrigin, Login};

const LONGEST_ID: usize = 2048;
const LONGEST_SECRET: usize = 16 << 10;

/// Returns the client to use with an issuer. Reuses the dynamically registered client `before` if it still fits.
pub(super) async fn client(
    exchange: &IssuerClient,
    options: &AuthOptions,
    issuer: &Issuer,
    before: Option<&Client>,
    redirect_uri: String,
) -> Result<Client, AuthError> {
    if let Some(known) = &options.client {
        return given(known, issuer, redirect_uri);
    }
    if let Some(document) = options.client_document.as_deref().filter(|_| issuer.documents) {
        return described(document, issuer, redirect_uri);
    }
    let fits = |client: &&Client| {
        let expired = client.secret_expires.is_some_and(|end| end <= Timestamp::now());
        client.origin == ClientOrigin::Registered && client.redirect_uri == redirect_uri && !expired
    };
    match before.filter(fits) {
        Some(client) => Ok(client.clone()),
        None => register(exchange, issuer, redirect_uri).await,
    }
}

/// Returns a stored login if its client matches the options, with the configured secret of the client; otherwise `None`.
pub(super) fn recall(mut login: Login, options: &AuthOptions) -> Option<Login> {
    match (login.client.origin, &options.client) {
        (ClientOrigin::Given, Some(known)) if known.id == login.client.id && known.issuer == login.issuer => {
            login.client.secret.clone_from(&known.secret);
            Some(login)
        }
        (ClientOrigin::Registered, None) => Some(login),
        (ClientOrigin::Document, None) => (options.client_document.as_ref() == Some(&login.client.id)).then_some(login),
        _ => None,
    }
}

fn given(known: &RegisteredClient, issuer: &Issuer, redirect_uri: String) -> Result<Client, AuthError> {
    if known.issuer != issuer.name {
        let reason = format!("the configured client belongs to {}", known.issuer);
        return Err(AuthError::registration(&issuer.name, reason));
    }
    let proof = proof(None, known.secret.is_some(), issuer)?;
    Ok(Client {
        id: known.id.clone(),
        secret: known.secret.clone(),
        proof,
        origin: ClientOrigin::Given,
        redirect_uri,
        secret_expires: None,
    })
}

fn described(document: &str, issuer: &Issuer, redirect_uri: String) -> Result<Client, AuthError> {
    let fits = read_url(document).is_ok_and(|url| url.scheme() == "https" && url.path().len() > 1 && url.fragment().is_none());
    if !fits {
        let reason = "the URL of the client's metadata document must start with `https://` and have a path";
        return Err(AuthError::registration(&issuer.name, reason));
    }
    let id = document.to_owned();
    Ok(Client { id, secret: None, proof: ClientAuth::None, origin: ClientOrigin::Document, redirect_uri, secret_expires: None })
}

async fn register(exchange: &IssuerClient, issuer: &Issuer, redirect_uri: String) -> Result<Client, AuthError> {
    let Some(url) = &issuer.registration else {
        return Err(AuthError::registration(
            &issuer.name,
            "it has no dynamic client registration; register a client there and set `oauth.client_id`",
        ));
    };
    let offered = |method: &&str| issuer.methods.iter().any(|offered| offered == method);
    let method = ["none", "client_secret_basic", "client_secret_post"].into_iter().find(offered).unwrap_or("none");
    let wanted = json!({
        "client_name": "Helve",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        // By default, issuers assume a web application, which must not redirect to this machine.
        "application_type": "native",
    });
    let response = exchange.post_json(url, &wanted).await?;
    if let Some((_, reason)) = exchange.refusal(&response) {
        return Err(refused(exchange, issuer, &response, &reason));
    }
    let fields = object(&response).unwrap_or_default();
    read_client(exchange, issuer, &fields, redirect_uri)
}

fn refused(exchange: &IssuerClient, issuer: &Issuer, response: &Response, reason: &str) -> AuthError {
    if issuer.guessed && matches!(response.status.as_u16(), 400..=499) {
        return AuthError::discovery(exchange.guard.server(), "it does not name its issuer");
    }
    AuthError::registration(&issuer.name, format!("client registration failed: {reason}"))
}

fn read_client(exchange: &IssuerClient, issuer: &Issuer, fields: &Object, redirect_uri: String) -> Result<Client, AuthError> {
    let text = |field: &str| fields.get(field).and_then(Value::as_str);
    let is_id = |id: &&str| (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    let id = text("client_id").filter(is_id).ok_or_else(|| AuthError::registration(&issuer.name, "it returned no client id"))?;
    let secret = text("client_secret").filter(|secret| (1..=LONGEST_SECRET).contains(&secret.len()));
    let secret = secret.map(|secret| SecretString::from(secret.to_owned()));
    exchange.hide(secret.clone());
    let end = fields.get("client_secret_expires_at").and_then(Value::as_i64).filter(|end| *end > 0);
    Ok(Client {
        id: id.to_owned(),
        proof: proof(text("token_endpoint_auth_method"), secret.is_some(), issuer)?,
        secret,
        origin: ClientOrigin::Registered,
        redirect_uri,
        secret_expires: end.and_then(|end| Timestamp::from_second(end).ok()),
    })
}

/// Returns how a client authenticates: as in its registration, otherwise by a method that the issuer supports.
fn proof(registered: Option<&str>, has_secret: bool, issuer: &Issuer) -> Result<ClientAuth, AuthError> {
    let known = |method: &str| match method {
        "client_secret_basic" => Some(ClientAuth::Basic),
        "client_secret_post" => Some(ClientAuth::Post),
        "none" => Some(ClientAuth::None),
        _ => None,
    };
    let proof = match registered {
        Some(method) => known(method),
        None if !has_secret => Some(ClientAuth::None),
        // The default method, which every issuer must accept.
        None if issuer.methods.is_empty() => Some(ClientAuth::Basic),
        None => ["client_secret_basic", "client_secret_post", "none"]
            .into_iter()
            .find(|method| issuer.methods.iter().any(|offered| offered == method))
            .and_then(known),
    };
    match proof {
        Some(ClientAuth::Basic | ClientAuth::Post) if !has_secret => {
            Err(AuthError::registration(&issuer.name, "it requires client authentication, but issued no secret"))
        }
        Some(proof) => Ok(proof),
        None => Err(AuthError::registration(&issuer.name, "it requires a client authentication method that is not supported")),
    }
}
