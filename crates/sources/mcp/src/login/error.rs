//! The error of a login. Its texts contain no tokens, codes or secrets.

use helve_fetch::FetchError;

use super::scopes::Scopes;

/// Why a login failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// A person must log in, but no browser is available.
    #[error("{server} requires a login, and no browser is available")]
    LoginNeeded {
        /// The origin of the server.
        server: String,
    },
    /// The person declined the login.
    #[error("the login at {issuer} was declined")]
    Declined {
        /// The identifier of the issuer.
        issuer: String,
    },
    /// The person did not finish the login in time.
    #[error("the login at {issuer} timed out")]
    TimedOut {
        /// The identifier of the issuer.
        issuer: String,
    },
    /// The server denies access, and another token would not help.
    #[error("{server} denies access{}", wanted(scopes))]
    Forbidden {
        /// The origin of the server.
        server: String,
        /// The scopes that the server requires.
        scopes: Scopes,
    },
    /// The server still requires a login after several logins.
    #[error("{server} still requires a login after several logins; try again later")]
    TooOften {
        /// The origin of the server.
        server: String,
    },
    /// A URL that a server or an issuer named cannot be used. No request was sent to the URL.
    #[error("the {what} cannot be used: {reason}")]
    Address {
        /// The purpose of the URL, such as `token endpoint`.
        what: &'static str,
        /// What is wrong with the URL.
        reason: String,
    },
    /// The issuer of the server could not be discovered.
    #[error("OAuth discovery for {server} failed: {reason}")]
    Discovery {
        /// The origin of the server.
        server: String,
        /// Why the discovery failed.
        reason: String,
    },
    /// Helve has no client registration that the issuer accepts.
    #[error("cannot register Helve as an OAuth client at {issuer}: {reason}")]
    Registration {
        /// The identifier of the issuer.
        issuer: String,
        /// Why there is no registration, and what to do.
        reason: String,
    },
    /// The issuer refuses to issue a token.
    #[error("{issuer} issued no token: {reason}")]
    Refused {
        /// The identifier of the issuer.
        issuer: String,
        /// The OAuth error code, such as `invalid_grant`.
        code: String,
        /// The error code and the issuer's description of the error.
        reason: String,
    },
    /// The response of the issuer is invalid or cannot be trusted.
    #[error("invalid response from {issuer}: {reason}")]
    Response {
        /// The identifier of the issuer.
        issuer: String,
        /// What is wrong with the response.
        reason: String,
    },
    /// A request to the server or the issuer failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// No browser could be opened, or no local port was free for the login callback.
    #[error("the login page cannot be opened: {reason}")]
    Browser {
        /// Why the login page cannot be opened.
        reason: String,
    },
    /// The operating system or the runtime failed, for example because no random numbers are available.
    #[error("the login failed: {reason}")]
    System {
        /// Why the login failed.
        reason: String,
    },
}

impl AuthError {
    /// Returns whether a person could resolve the error by logging in.
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
