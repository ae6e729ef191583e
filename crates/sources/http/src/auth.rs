//! Credentials: reads them from a definition, adds them to requests, and lists their secrets for the redactor.

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
use crate::oauth::TokenCache;
use crate::plan::read_header_name;

impl Auth {
    /// Returns all secrets of the authentication method, in every encoding in which they are sent.
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

    /// Returns the settings of the authentication method without secrets.
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

/// Returns a secret both as written and form-encoded. The redactor derives all other encodings.
pub(crate) fn spellings(secret: &Secret) -> Vec<SecretString> {
    vec![secret.secret().clone(), form::encoded(secret.expose()).into()]
}

fn with_basic(secret: &Secret, user: &str, password: &str) -> Vec<SecretString> {
    spellings(secret).into_iter().chain([SecretString::from(basic(user, password))]).collect()
}

/// Returns the value of a Basic `Authorization` header, without the scheme.
pub(crate) fn basic(user: &str, password: &str) -> String {
    STANDARD.encode(format!("{user}:{password}"))
}

/// The credentials of a tool, after its definition was checked.
#[derive(Clone)]
pub(crate) enum Credentials {
    /// No authentication.
    None,
    /// A header with a constant value.
    Header(HeaderName, HeaderValue),
    /// A query parameter with a constant value.
    Query(String, Secret),
    /// OAuth 2 access tokens, and the redactor to which new tokens are added.
    Tokens(Arc<TokenCache>, Redactor),
}

impl Credentials {
    /// Reads the field `auth_method` of a definition.
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
                    Some(_) => ("/auth_method/query", "an API key is sent in a header or in the query, not in both"),
                    None => ("/auth_method", "an API key needs `header` or `query`"),
                };
                Err(FieldError::new(path, message).hint("write `header: X-Api-Key` or `query: key`"))
            }
            Auth::Bearer { token } => {
                not_empty(token, "/auth_method/token")?;
                Ok(Self::Header(header::AUTHORIZATION, secret_value(&format!("Bearer {}", token.expose()), "/auth_method/token")?))
            }
            Auth::Basic { username, password } => {
                if username.contains(':') {
                    return Err(FieldError::new("/auth_method/username", "a user name cannot contain `:`"));
                }
                let value = format!("Basic {}", basic(username, password.expose()));
                Ok(Self::Header(header::AUTHORIZATION, secret_value(&value, "/auth_method/password")?))
            }
            Auth::ClientCredentials { token_url, client_id, client_secret, scopes } => {
                not_empty(client_secret, "/auth_method/client_secret")?;
                let tokens = TokenCache::shared(token_url, client_id, client_secret, &scopes.join(" "), fetch)?;
                Ok(Self::Tokens(tokens, redactor.clone()))
            }
        }
    }

    /// Creates credentials that send an API key in a header. The paths are the JSON pointers of the two fields.
    pub(crate) fn key(name: &str, value: &Secret, name_path: &str, value_path: &str) -> Result<Self, FieldError> {
        Ok(Self::Header(read_header_name(name, name_path)?, secret_value(value.expose(), value_path)?))
    }

    /// Sends a request with the credentials. If the server rejects an OAuth 2 token, renews the token and sends the request once more.
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
        // A server that rejects the token has not processed the request, so it is safe to repeat the request.
        again.headers.insert(header::AUTHORIZATION, tokens.get(Some(&token), redactor).await?);
        fetch.send(again).await.map_err(failure::of_fetch)
    }

    fn put_on(&self, request: &mut Request) {
        match self {
            Self::Header(name, value) => {
                request.headers.insert(name, value.clone());
            }
            Self::Query(name, value) => {
                // Remove an argument of the same name, because the server might prefer it to the key.
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
    FieldError::new(path, "the value is empty").hint("check that the environment variable is set")
}

fn secret_value(text: &str, path: &str) -> Result<HeaderValue, FieldError> {
    if text.trim().is_empty() {
        return Err(empty(path));
    }
    let mut value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
        FieldError::new(path, "the value contains characters that are not allowed in a header").hint("remove line breaks from the value")
    })?;
    value.set_sensitive(true);
    Ok(value)
}
