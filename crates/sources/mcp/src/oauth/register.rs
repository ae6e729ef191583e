//! Which client Helve is to an issuer: one that a person registered, one that a document describes, or one that the
//! issuer makes up when it is asked (RFC 7591).

use helve_core::Timestamp;
use helve_fetch::{Response, read_url};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::discover::Issuer;
use super::error::AuthError;
use super::exchange::{Exchange, Object, object};
use super::options::{AuthOptions, KnownClient};
use super::store::{Client, Login, Origin, Proof};

const LONGEST_ID: usize = 2048;
const LONGEST_SECRET: usize = 16 << 10;

/// The client to use at an issuer. One that it made up before is used again where it still fits.
pub(super) async fn client(
    exchange: &Exchange,
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
        client.origin == Origin::Registered && client.redirect_uri == redirect_uri && !expired
    };
    match before.filter(fits) {
        Some(client) => Ok(client.clone()),
        None => register(exchange, issuer, redirect_uri).await,
    }
}

/// Whether a login was made by the client that the options ask for, with that client's secret put back in its place.
pub(super) fn recall(mut login: Login, options: &AuthOptions) -> Option<Login> {
    match (login.client.origin, &options.client) {
        (Origin::Given, Some(known)) if known.id == login.client.id && known.issuer == login.issuer => {
            login.client.secret.clone_from(&known.secret);
            Some(login)
        }
        (Origin::Registered, None) => Some(login),
        (Origin::Document, None) => (options.client_document.as_ref() == Some(&login.client.id)).then_some(login),
        _ => None,
    }
}

fn given(known: &KnownClient, issuer: &Issuer, redirect_uri: String) -> Result<Client, AuthError> {
    if known.issuer != issuer.name {
        let reason = format!("the client that was set up belongs to {}, and is shown to nobody else", known.issuer);
        return Err(AuthError::registration(&issuer.name, reason));
    }
    let proof = proof(None, known.secret.is_some(), issuer)?;
    Ok(Client { id: known.id.clone(), secret: known.secret.clone(), proof, origin: Origin::Given, redirect_uri, secret_expires: None })
}

fn described(document: &str, issuer: &Issuer, redirect_uri: String) -> Result<Client, AuthError> {
    let fits = read_url(document).is_ok_and(|url| url.scheme() == "https" && url.path().len() > 1 && url.fragment().is_none());
    if !fits {
        let reason = "the address of the document about the client must begin with `https://` and have a path";
        return Err(AuthError::registration(&issuer.name, reason));
    }
    let id = document.to_owned();
    Ok(Client { id, secret: None, proof: Proof::None, origin: Origin::Document, redirect_uri, secret_expires: None })
}

async fn register(exchange: &Exchange, issuer: &Issuer, redirect_uri: String) -> Result<Client, AuthError> {
    let Some(url) = &issuer.registration else {
        return Err(AuthError::registration(&issuer.name, "it registers nobody by itself; register a client there and set it up here"));
    };
    let offered = |method: &&str| issuer.methods.iter().any(|offered| offered == method);
    let method = ["none", "client_secret_basic", "client_secret_post"].into_iter().find(offered).unwrap_or("none");
    let wanted = json!({
        "client_name": "Helve",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        // Issuers take clients for sites unless they are told, and sites must not come back to this machine.
        "application_type": "native",
    });
    let response = exchange.post_json(url, &wanted).await?;
    if let Some((_, reason)) = exchange.refusal(&response) {
        return Err(refused(exchange, issuer, &response, &reason));
    }
    let answer = object(&response).unwrap_or_default();
    read_client(exchange, issuer, &answer, redirect_uri)
}

fn refused(exchange: &Exchange, issuer: &Issuer, response: &Response, reason: &str) -> AuthError {
    if issuer.guessed && matches!(response.status.as_u16(), 400..=499) {
        return AuthError::discovery(exchange.guard.server(), "it does not say who gives tokens for it");
    }
    AuthError::registration(&issuer.name, format!("it registers no client: {reason}"))
}

fn read_client(exchange: &Exchange, issuer: &Issuer, answer: &Object, redirect_uri: String) -> Result<Client, AuthError> {
    let text = |field: &str| answer.get(field).and_then(Value::as_str);
    let is_id = |id: &&str| (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    let id = text("client_id").filter(is_id).ok_or_else(|| AuthError::registration(&issuer.name, "it gave a client no name"))?;
    let secret = text("client_secret").filter(|secret| (1..=LONGEST_SECRET).contains(&secret.len()));
    let secret = secret.map(|secret| SecretString::from(secret.to_owned()));
    exchange.hide(secret.clone());
    let end = answer.get("client_secret_expires_at").and_then(Value::as_i64).filter(|end| *end > 0);
    Ok(Client {
        id: id.to_owned(),
        proof: proof(text("token_endpoint_auth_method"), secret.is_some(), issuer)?,
        secret,
        origin: Origin::Registered,
        redirect_uri,
        secret_expires: end.and_then(|end| Timestamp::from_second(end).ok()),
    })
}

/// How a client proves itself: as its registration says, else as the issuer prefers.
fn proof(registered: Option<&str>, has_secret: bool, issuer: &Issuer) -> Result<Proof, AuthError> {
    let known = |method: &str| match method {
        "client_secret_basic" => Some(Proof::Basic),
        "client_secret_post" => Some(Proof::Post),
        "none" => Some(Proof::None),
        _ => None,
    };
    let proof = match registered {
        Some(method) => known(method),
        None if !has_secret => Some(Proof::None),
        // What issuers that say nothing must take.
        None if issuer.methods.is_empty() => Some(Proof::Basic),
        None => ["client_secret_basic", "client_secret_post", "none"]
            .into_iter()
            .find(|method| issuer.methods.iter().any(|offered| offered == method))
            .and_then(known),
    };
    match proof {
        Some(Proof::Basic | Proof::Post) if !has_secret => {
            Err(AuthError::registration(&issuer.name, "it wants the client to prove itself, but gave it no secret"))
        }
        Some(proof) => Ok(proof),
        None => Err(AuthError::registration(&issuer.name, "it wants the client to prove itself in a way that is not supported")),
    }
}
