//! Why a server cannot be spoken to on somebody's behalf, by variant. No text of it holds a token, a code or a secret.

use helve_fetch::FetchError;

use super::scopes::Scopes;

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// Only a person can go on, and there is none.
    #[error("{server} wants somebody to log in, and there is nobody to ask")]
    LoginNeeded {
        /// The origin of the server.
        server: String,
    },
    /// The person said no.
    #[error("the login at {issuer} was refused")]
    Declined {
        /// Who asked them.
        issuer: String,
    },
    /// The person did not finish in time.
    #[error("the login at {issuer} was not finished in time")]
    Unanswered {
        /// Who asked them.
        issuer: String,
    },
    /// The server refuses what the token is for, and another one would be no better.
    #[error("{server} does not allow this{}", wanted(scopes))]
    Forbidden {
        /// The origin of the server.
        server: String,
        /// What it wants the token to be good for.
        scopes: Scopes,
    },
    /// People were asked again and again, and the server still wants more.
    #[error("{server} asks for one login after the other; asking again will not help now")]
    TooOften {
        /// The origin of the server.
        server: String,
    },
    /// An address that a server gave cannot be used. Nothing was sent to it.
    #[error("the {what} cannot be used: {reason}")]
    Address {
        /// Whose address it is.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing says who gives tokens, or what says so contradicts itself.
    #[error("how to log in at {server} cannot be found out: {reason}")]
    Discovery {
        /// The origin of the server.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no client that the issuer of tokens would know.
    #[error("{issuer} does not know Helve: {reason}")]
    Registration {
        /// The issuer of tokens.
        issuer: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The issuer refuses to give a token.
    #[error("{issuer} gives no token: {reason}")]
    Refused {
        /// The issuer of tokens.
        issuer: String,
        /// Its error code, such as `invalid_grant`.
        code: String,
        /// What it says.
        reason: String,
    },
    /// What came back cannot be trusted or read.
    #[error("the answer of {issuer} is not accepted: {reason}")]
    Response {
        /// The issuer of tokens.
        issuer: String,
        /// What is wrong.
        reason: String,
    },
    /// Somebody could not be reached.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// No browser could be opened, or nothing can listen for its answer.
    #[error("nobody can log in from here: {reason}")]
    Browser {
        /// What is wrong.
        reason: String,
    },
    /// The system failed: it has no randomness, or is shutting down.
    #[error("the login stopped: {reason}")]
    System {
        /// What is wrong.
        reason: String,
    },
}

impl AuthError {
    /// Whether a person who logs in could put this right.
    #[must_use]
    pub fn needs_person(&self) -> bool {
        matches!(self, Self::LoginNeeded { .. } | Self::Declined { .. } | Self::Unanswered { .. })
    }

    pub(super) fn discovery(server: &str, reason: impl Into<String>) -> Self {
        Self::Discovery { server: server.to_owned(), reason: reason.into() }
    }

    pub(super) fn registration(issuer: &str, reason: impl Into<String>) -> Self {
        Self::Registration { issuer: issuer.to_owned(), reason: reason.into() }
    }

    pub(super) fn answer(issuer: &str, reason: impl Into<String>) -> Self {
        Self::Response { issuer: issuer.to_owned(), reason: reason.into() }
    }

    pub(super) fn browser(reason: impl Into<String>) -> Self {
        Self::Browser { reason: reason.into() }
    }
}

fn wanted(scopes: &Scopes) -> String {
    if scopes.is_empty() { String::new() } else { format!("; it wants the scope `{scopes}`") }
}
