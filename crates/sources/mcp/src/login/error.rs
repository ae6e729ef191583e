//! Why a login fails. No text of it holds a token, a code or a secret.

use helve_fetch::FetchError;

use super::scopes::Scopes;

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// A person must log in, and there is none to ask.
    #[error("{server} requires a login, and no browser is available")]
    LoginNeeded {
        /// The origin of the server.
        server: String,
    },
    /// The person declined.
    #[error("the login at {issuer} was declined")]
    Declined {
        /// The issuer.
        issuer: String,
    },
    /// The person did not finish in time.
    #[error("the login at {issuer} timed out")]
    TimedOut {
        /// The issuer.
        issuer: String,
    },
    /// The server denies access, and another token would not help.
    #[error("{server} denies access{}", wanted(scopes))]
    Forbidden {
        /// The origin of the server.
        server: String,
        /// The scopes that it requires.
        scopes: Scopes,
    },
    /// The server still asks for a login after several.
    #[error("{server} asks for a login again and again; try again later")]
    TooOften {
        /// The origin of the server.
        server: String,
    },
    /// A URL that a server named cannot be used. Nothing was sent to it.
    #[error("the {what} cannot be used: {reason}")]
    Address {
        /// What the URL is for.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The issuer of the server could not be discovered.
    #[error("OAuth discovery for {server} failed: {reason}")]
    Discovery {
        /// The origin of the server.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no client that the issuer accepts.
    #[error("Helve is not registered at {issuer}: {reason}")]
    Registration {
        /// The issuer.
        issuer: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The issuer refuses to issue a token.
    #[error("{issuer} issued no token: {reason}")]
    Refused {
        /// The issuer.
        issuer: String,
        /// Its error code, such as `invalid_grant`.
        code: String,
        /// Its description.
        reason: String,
    },
    /// The response is invalid or cannot be trusted.
    #[error("invalid response from {issuer}: {reason}")]
    Response {
        /// The issuer.
        issuer: String,
        /// What is wrong.
        reason: String,
    },
    /// A request failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// No browser could be opened, or the callback has no port.
    #[error("the login page cannot be opened: {reason}")]
    Browser {
        /// What is wrong.
        reason: String,
    },
    /// The system failed: it has no randomness, or is shutting down.
    #[error("the login failed: {reason}")]
    System {
        /// What is wrong.
        reason: String,
    },
}

impl AuthError {
    /// Returns whether a login by a person could resolve this.
    #[must_use]
    pub fn needs_person(&self) -> bool {
        matches!(self, Self::LoginNeeded { .. } | Self::Declined { .. } | Self::TimedOut { .. })
    }

    pub(super) fn discovery(server: &str, reason: impl Into<String>) -> Self {
        Self::Discovery { server: server.to_owned(), reason: reason.into() }
    }

    pub(super) fn registration(issuer: &str, reason: impl Into<String>) -> Self {
        Self::Registration { issuer: issuer.to_owned(), reason: reason.into() }
    }

    pub(super) fn response(issuer: &str, reason: impl Into<String>) -> Self {
        Self::Response { issuer: issuer.to_owned(), reason: reason.into() }
    }

    pub(super) fn browser(reason: impl Into<String>) -> Self {
        Self::Browser { reason: reason.into() }
    }
}

fn wanted(scopes: &Scopes) -> String {
    if scopes.is_empty() { String::new() } else { format!("; it requires the scope `{scopes}`") }
}
