//! Credentials: read from a definition, put on requests, and kept out of sight.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use helve_core::authored::{FieldError, Secret};
use helve_core::{Redactor, ToolError};
use helve_fetch::{Fetch, HeaderName, HeaderValue, Request, Response, header};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::definition::Auth;
use crate::failure;
use crate::form;
use crate::oauth::Tokens;
use crate::plan::read_header_name;

impl Auth {
    /// Everything in it that must never be shown, in every spelling in which it goes over the wire.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        match self {
            Self::ApiKey { value, .. } => spellings(value),
            Self::Bearer { token } => spellings(token),
            Self::Basic { username, password } => with_basic(password, username, password.expose()),
            Self::ClientCredentials { client_id, client_secret, .. } => {
                with_basic(client_secret, &form::encoded(client_id), &form::encoded(client_secret.expose()))
            }
        }
    }

    /// What it is without its secrets: as whom Helve acts, and where that is said.
    pub(crate) fn outline(&self) -> Value {
        match self {
            Self::ApiKey { header, query, .. } => json!({"header": header, "query": query}),
            Self::Bearer { .. } => json!("bearer"),
            Self::Basic { username, .. } => json!({"username": username}),
            Self::ClientCredentials { token_url, client_id, scopes, .. } => {
                json!({"token_url": token_url, "client_id": client_id, "scopes": scopes})
            }
        }
    }
}

/// A secret as it is, and as it stands in a form. The redactor knows the other spellings by itself.
pub(crate) fn spellings(secret: &Secret) -> Vec<SecretString> {
    vec![secret.secret().clone(), form::encoded(secret.expose()).into()]
}

fn with_basic(secret: &Secret, user: &str, password: &str) -> Vec<SecretString> {
    spellings(secret).into_iter().chain([SecretString::from(basic(user, password))]).collect()
}

/// User and password as one word.
pub(crate) fn basic(user: &str, password: &str) -> String {
    STANDARD.encode(format!("{user}:{password}"))
}

/// Credentials that are ready to be used.
#[derive(Clone)]
pub(crate) enum Credentials {
    /// None are needed.
    None,
    /// A header that is the same for every request.
    Header(HeaderName, HeaderValue),
    /// An entry of the query.
    Query(String, Secret),
    /// Tokens that someone gives out, and who must know them to hide them.
    Tokens(Arc<Tokens>, Redactor),
}

impl Credentials {
    /// Reads what a definition says in the field `auth_method`.
    pub(crate) fn read(auth: Option<&Auth>, fetch: &Fetch, redactor: &Redactor) -> Result<Self, FieldError> {
        let Some(auth) = auth else { return Ok(Self::None) };
        match auth {
            Auth::ApiKey { header: Some(name), query: None, value } => {
                let name = read_header_name(name, "/auth_method/header")?;
                Ok(Self::Header(name, secret_value(value.expose(), "/auth_method/value")?))
            }
            Auth::ApiKey { header: None, query: Some(name), value } if !name.is_empty() => {
                not_empty(value, "/auth_method/value")?;
                Ok(Self::Query(name.clone(), value.clone()))
            }
            Auth::ApiKey { header, .. } => {
                let (path, message) = match header {
                    Some(_) => ("/auth_method/query", "a key goes into a header or into the query, not into both"),
                    None => ("/auth_method", "a key needs a place"),
                };
                Err(FieldError::new(path, message).hint("write `header: X-Api-Key` or `query: key`"))
            }
            Auth::Bearer { token } => {
                not_empty(token, "/auth_method/token")?;
                Ok(Self::Header(header::AUTHORIZATION, secret_value(&format!("Bearer {}", token.expose()), "/auth_method/token")?))
            }
            Auth::Basic { username, password } => {
                if username.contains(':') {
                    return Err(FieldError::new("/auth_method/username", "a user name cannot have a `:` in it"));
                }
                let value = format!("Basic {}", basic(username, password.expose()));
                Ok(Self::Header(header::AUTHORIZATION, secret_value(&value, "/auth_method/password")?))
            }
            Auth::ClientCredentials { token_url, client_id, client_secret, scopes } => {
                not_empty(client_secret, "/auth_method/client_secret")?;
                let tokens = Tokens::shared(token_url, client_id, client_secret, &scopes.join(" "), fetch)?;
                Ok(Self::Tokens(tokens, redactor.clone()))
            }
        }
    }

    /// A key in a header.
    pub(crate) fn key(name: &str, value: &Secret, name_path: &str, value_path: &str) -> Result<Self, FieldError> {
        Ok(Self::Header(read_header_name(name, name_path)?, secret_value(value.expose(), value_path)?))
    }

    /// Sends a request with the credentials. Tokens that are no longer good are renewed, once.
    pub(crate) async fn send(&self, fetch: &Fetch, mut request: Request) -> Result<Response, ToolError> {
        let Self::Tokens(tokens, redactor) = self else {
            self.put_on(&mut request);
            return fetch.send(request).await.map_err(failure::of_fetch);
        };
        let token = tokens.get(None, redactor).await?;
        let mut again = request.clone();
        request.headers.insert(header::AUTHORIZATION, token.clone());
        let response = fetch.send(request).await.map_err(failure::of_fetch)?;
        if response.status.as_u16() != 401 {
            return Ok(response);
        }
        // Whoever does not know the token has done nothing, so the request may be sent once more.
        again.headers.insert(header::AUTHORIZATION, tokens.get(Some(&token), redactor).await?);
        fetch.send(again).await.map_err(failure::of_fetch)
    }

    fn put_on(&self, request: &mut Request) {
        match self {
            Self::Header(name, value) => {
                request.headers.insert(name, value.clone());
            }
            Self::Query(name, value) => {
                // An argument of the same name must not stand beside the key, where a server might prefer it.
                let others: Vec<(String, String)> =
                    request.url.query_pairs().filter(|(key, _)| key != name).map(|(k, v)| (k.into(), v.into())).collect();
                request.url.query_pairs_mut().clear().extend_pairs(others).append_pair(name, value.expose());
            }
            Self::None | Self::Tokens(..) => {}
        }
    }
}

fn not_empty(secret: &Secret, path: &str) -> Result<(), FieldError> {
    if secret.expose().trim().is_empty() { Err(empty(path)) } else { Ok(()) }
}

fn empty(path: &str) -> FieldError {
    FieldError::new(path, "it is empty").hint("is the environment variable set?")
}

fn secret_value(text: &str, path: &str) -> Result<HeaderValue, FieldError> {
    if text.trim().is_empty() {
        return Err(empty(path));
    }
    let mut value = HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| FieldError::new(path, "it has characters that no header can carry").hint("is there a line break at its end?"))?;
    value.set_sensitive(true);
    Ok(value)
}
