//! Why a model did not answer, and what can be done.

use std::time::Duration;

/// Why a model did not answer, and so what can be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The key is missing or wrong.
    #[error("the model's provider refused the key: {0}")]
    Auth(String),
    /// The account is used up.
    #[error("the account has no credit or quota left: {0}")]
    Quota(String),
    /// The conversation does not fit.
    #[error("the conversation is longer than the model can read: {0}")]
    ContextLength(String),
    /// The provider refuses the content.
    #[error("the provider refused the content: {0}")]
    Filter(String),
    /// The provider is busy.
    #[error("the model is overloaded: {message}{}", again(*retry_after))]
    Overloaded {
        /// What it said.
        message: String,
        /// When to try again, where it said so.
        retry_after: Option<Duration>,
    },
    /// There is no such model.
    #[error("the provider has no such model: {0}")]
    NotFound(String),
    /// The model or its server cannot do what was asked of it.
    #[error("the model does not support {feature}: {message}")]
    Unsupported {
        /// What it cannot do.
        feature: Feature,
        /// What it said.
        message: String,
    },
    /// The provider does not accept the request.
    #[error("the provider refused the request: {0}")]
    Refused(String),
    /// A recording cannot be read or written, or has no answer.
    #[error("{0}")]
    Recording(String),
    /// No connection, or one that broke.
    #[error("the model cannot be reached: {0}")]
    Network(String),
    /// Nothing came for too long.
    #[error("the model took too long: {0}")]
    Timeout(String),
    /// An answer that is none.
    #[error("the model's answer makes no sense: {0}")]
    Protocol(String),
}

/// When it says that it will answer again.
fn again(after: Option<Duration>) -> String {
    after.map(|after| format!(" (it asks to be asked again in {} s)", after.as_secs().max(1))).unwrap_or_default()
}

/// What not every model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// Native function calling.
    Tools,
    /// Output held to a JSON Schema.
    Schema,
}

impl std::fmt::Display for Feature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tools => "function calling",
            Self::Schema => "output held to a schema",
        })
    }
}

impl ModelError {
    /// The kind as programs see it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Auth(_) => "auth",
            Self::Quota(_) => "quota",
            Self::ContextLength(_) => "context_length",
            Self::Filter(_) => "filter",
            Self::Overloaded { .. } => "overloaded",
            Self::NotFound(_) => "model_not_found",
            Self::Unsupported { .. } => "unsupported",
            Self::Refused(_) => "refused",
            Self::Recording(_) => "recording",
            Self::Network(_) => "network",
            Self::Timeout(_) => "model_timeout",
            Self::Protocol(_) => "protocol",
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Auth(_) => "check the provider's key in the environment or in `helve.yaml`",
            Self::Quota(_) => "add credit at the provider, wait for the next period, or choose another model with `--model`",
            Self::ContextLength(_) => "start a new conversation, or choose a model that reads more",
            Self::Filter(_) => "say it in other words, or choose another model",
            Self::Overloaded { .. } => "try again later, or choose another model with `--model`",
            Self::NotFound(_) => "`helve models` lists the models that can be reached",
            Self::Unsupported { .. } => "let the agent fall back: `output_strategy: {fallback_to_structured_output: true}`",
            Self::Refused(_) => "look at what the provider says; an option in `extra` may be unknown to it",
            Self::Recording(_) => "make another recording with `--record FILE`, or name a model that answers with `--model`",
            Self::Network(_) => "check that the server runs and that its address is right",
            Self::Timeout(_) => "try again, or give it longer: `timeouts` of the model in `helve.yaml`",
            Self::Protocol(_) => "check that the address is that of a model's API and the provider is the right one",
        }
    }

    /// Whether asking again may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Overloaded { .. } | Self::Network(_) | Self::Timeout(_))
    }
}
