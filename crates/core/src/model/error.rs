//! Errors of language models, with a hint for each.

use std::time::Duration;

/// Why a request to a model failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The API key is missing or wrong.
    #[error("the provider rejected the API key: {0}")]
    Auth(String),
    /// The account has no credit or quota left.
    #[error("the account has no credit or quota left: {0}")]
    Quota(String),
    /// The conversation exceeds the context window.
    #[error("the conversation exceeds the model's context window: {0}")]
    ContextLength(String),
    /// The provider's content filter rejected the conversation.
    #[error("the provider refused the content: {0}")]
    Filter(String),
    /// The provider is overloaded or limits the rate of requests.
    #[error("the model is overloaded: {message}{}", again(*retry_after))]
    Overloaded {
        /// The provider's message.
        message: String,
        /// Delay before a retry, if the provider sent one.
        retry_after: Option<Duration>,
    },
    /// The provider has no model of this name.
    #[error("the provider has no such model: {0}")]
    NotFound(String),
    /// The model or its server lacks a feature.
    #[error("the model does not support {feature}: {message}")]
    Unsupported {
        /// The missing feature.
        feature: Feature,
        /// The provider's message.
        message: String,
    },
    /// The provider rejected the request.
    #[error("the provider refused the request: {0}")]
    Refused(String),
    /// A recording cannot be read or written, or has no response for the request.
    #[error("{0}")]
    Recording(String),
    /// The connection failed or was closed.
    #[error("the model cannot be reached: {0}")]
    Network(String),
    /// The request timed out.
    #[error("the request to the model timed out: {0}")]
    Timeout(String),
    /// The response does not follow the wire format.
    #[error("the model's response is invalid: {0}")]
    Protocol(String),
}

fn again(after: Option<Duration>) -> String {
    after.map(|after| format!(" (retry after {} s)", after.as_secs().max(1))).unwrap_or_default()
}

/// A feature that not every model supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// Native function calling.
    Tools,
    /// Output constrained to a JSON Schema.
    Schema,
}

impl std::fmt::Display for Feature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tools => "function calling",
            Self::Schema => "structured output",
        })
    }
}

impl ModelError {
    /// Returns the name of the error kind in JSON.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.facts().0
    }

    /// Returns a hint on how to resolve the error.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        self.facts().1
    }

    fn facts(&self) -> (&'static str, &'static str) {
        match self {
            Self::Auth(_) => ("auth", "check the provider's key in the environment or in `helve.yaml`"),
            Self::Quota(_) => ("quota", "add credit at the provider, wait for the next period, or choose another model with `--model`"),
            Self::ContextLength(_) => ("context_length", "start a new conversation, or choose a model with a larger context window"),
            Self::Filter(_) => ("filter", "rephrase the input, or choose another model"),
            Self::Overloaded { .. } => ("overloaded", "try again later, or choose another model with `--model`"),
            Self::NotFound(_) => ("model_not_found", "`helve models` lists the models that can be reached"),
            Self::Unsupported { .. } => {
                ("unsupported", "let the agent fall back: `output_strategy: {fallback_to_structured_output: true}`")
            }
            Self::Refused(_) => ("refused", "see the provider's message; the provider may not support an option in `extra`"),
            Self::Recording(_) => ("recording", "make another recording with `--record FILE`, or choose a model with `--model`"),
            Self::Network(_) => ("network", "check that the server is running and that its address is correct"),
            Self::Timeout(_) => ("model_timeout", "try again, or raise `timeouts` of the model in `helve.yaml`"),
            Self::Protocol(_) => ("protocol", "check that the address belongs to a model API of the configured provider"),
        }
    }

    /// Returns whether a retry may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Overloaded { .. } | Self::Network(_) | Self::Timeout(_))
    }
}
