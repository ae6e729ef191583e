//! One request to a person: the address where they log in, and the judgement of what their browser brings back.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use helve_fetch::Url;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::discover::{Found, Issuer};
use super::error::AuthError;
use super::exchange::Exchange;
use super::listener::Return;
use super::scopes::Scopes;
use super::store::Client;

/// A request that is answered at most once.
pub(super) struct Ask {
    /// Known to the browser and to us, so that nobody else can answer.
    pub(super) state: String,
    /// Shown only where the code becomes a token, so that a code alone is worth nothing.
    pub(super) verifier: SecretString,
}

impl Ask {
    pub(super) fn new() -> Result<Self, AuthError> {
        Ok(Self { state: random()?, verifier: random()?.into() })
    }

    /// Where the person logs in.
    pub(super) fn url(&self, found: &Found, client: &Client, scopes: &Scopes) -> Url {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose_secret()));
        let mut url = found.issuer.authorization.clone();
        let mut query = url.query_pairs_mut();
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", &client.redirect_uri),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", &self.state),
            ("resource", &found.resource),
        ]);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.to_string());
        }
        if scopes.offline() {
            // OpenID Connect gives refresh tokens only to those who ask again.
            query.append_pair("prompt", "consent");
        }
        drop(query);
        url
    }
}

/// The code that a browser brought, if it comes from the issuer that was asked (RFC 9207).
pub(super) fn accept(exchange: &Exchange, issuer: &Issuer, returned: Return) -> Result<SecretString, AuthError> {
    let code = returned.code.map(SecretString::from);
    exchange.hide(code.clone());
    // The names are compared byte by byte. Before they are, nothing else that came along is believed or shown.
    match &returned.iss {
        Some(name) if *name != issuer.name => return Err(AuthError::answer(&issuer.name, "it comes from another issuer")),
        None if issuer.says_who => return Err(AuthError::answer(&issuer.name, "it does not say which issuer it comes from")),
        _ => {}
    }
    match (returned.error.as_deref(), code) {
        (Some("access_denied"), _) => Err(AuthError::Declined { issuer: issuer.name.clone() }),
        (Some(error), _) => {
            let code = exchange.said(error);
            let reason = returned.error_description.map_or_else(|| code.clone(), |text| format!("{code}: {}", exchange.said(&text)));
            Err(AuthError::Refused { issuer: issuer.name.clone(), code, reason })
        }
        (None, Some(code)) if !code.expose_secret().is_empty() => Ok(code),
        (None, _) => Err(AuthError::answer(&issuer.name, "it brings no code")),
    }
}

fn random() -> Result<String, AuthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| AuthError::System { reason: error.to_string() })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
