//! An authorization request: creates the URL where a person logs in, and checks the callback of the browser.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use helve_fetch::Url;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::callback::Callback;
use super::discovery::{Discovery, Issuer};
use super::error::AuthError;
use super::issuer_client::IssuerClient;
use super::scopes::Scopes;
use super::store::Client;

/// The random values of one authorization request.
pub(super) struct AuthorizationRequest {
    /// The OAuth `state`, known only to the browser and to Helve, so that no other web page can forge the callback.
    pub(super) state: String,
    /// The PKCE code verifier. Helve sends it only with the code, so that a leaked code is useless.
    pub(super) verifier: SecretString,
}

impl AuthorizationRequest {
    pub(super) fn new() -> Result<Self, AuthError> {
        Ok(Self { state: random()?, verifier: random()?.into() })
    }

    /// Returns the URL where the person logs in.
    pub(super) fn url(&self, found: &Discovery, client: &Client, scopes: &Scopes) -> Url {
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
            // OpenID Connect issues refresh tokens only with an explicit consent.
            query.append_pair("prompt", "consent");
        }
        drop(query);
        url
    }
}

/// Returns the code of a callback. Returns an error if the callback is not from `issuer` (RFC 9207), or reports an error.
pub(super) fn accept(exchange: &IssuerClient, issuer: &Issuer, returned: Callback) -> Result<SecretString, AuthError> {
    let code = returned.code.map(SecretString::from);
    exchange.hide(code.clone());
    // Compares the issuer byte by byte first. Until then, no other part of the callback is trusted or shown.
    match &returned.iss {
        Some(name) if *name != issuer.name => return Err(AuthError::response(&issuer.name, "it comes from another issuer")),
        None if issuer.names_itself => return Err(AuthError::response(&issuer.name, "it does not name its issuer")),
        _ => {}
    }
    match (returned.error.as_deref(), code) {
        (Some("access_denied"), _) => Err(AuthError::Declined { issuer: issuer.name.clone() }),
        (Some(error), _) => {
            let code = exchange.excerpt(error);
            let reason = returned.error_description.map_or_else(|| code.clone(), |text| format!("{code}: {}", exchange.excerpt(&text)));
            Err(AuthError::Refused { issuer: issuer.name.clone(), code, reason })
        }
        (None, Some(code)) if !code.expose_secret().is_empty() => Ok(code),
        (None, _) => Err(AuthError::response(&issuer.name, "it has no code")),
    }
}

fn random() -> Result<String, AuthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| AuthError::System { reason: error.to_string() })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
