//! Errors of a provider. Each wire writes them in its own format.

/// An error of the provider, with the status and body that the provider would send.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// Invalid API key: 401; Gemini sends 400.
    Auth,
    /// Quota exhausted: 429 with `insufficient_quota`; Anthropic sends 402.
    Quota,
    /// Rate limit exceeded: 429.
    Rate,
    /// Context length exceeded: 400.
    ContextLength,
    /// The model does not support tools: 400.
    ToolsUnsupported,
    /// Unknown model: 404.
    UnknownModel,
    /// Blocked by the content filter: 400; Gemini sends 200 without a candidate.
    Filter,
    /// Internal server error: 500.
    Internal,
    /// Overloaded: 503; Anthropic sends 529.
    Overloaded,
    /// Anything else.
    Other {
        /// The HTTP status.
        status: u16,
        /// The error type or code of the wire.
        code: String,
        /// The message.
        message: String,
    },
}

impl Failure {
    /// Another error.
    #[must_use]
    pub fn other(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Other { status, code: code.into(), message: message.into() }
    }
}
