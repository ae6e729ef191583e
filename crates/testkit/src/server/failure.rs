//! Why a provider refuses to answer. How it says so is a matter of the wire.

/// Why a provider refuses to answer. Status and body are those of the provider that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The key is wrong: 401; Gemini says 400.
    Auth,
    /// The account is used up: 429 with `insufficient_quota`; Anthropic says 402.
    Quota,
    /// Too many requests: 429.
    Rate,
    /// The conversation is too long: 400.
    ContextLength,
    /// The model takes no tools: 400.
    ToolsUnsupported,
    /// There is no such model: 404.
    UnknownModel,
    /// The question is refused for what it says: 400; Gemini says 200 and gives no answer.
    Filter,
    /// Something broke: 500.
    Internal,
    /// The provider is busy: 503; Anthropic says 529.
    Overloaded,
    /// Anything else.
    Other {
        /// The HTTP status.
        status: u16,
        /// What stands where the wire has a word for the kind of error.
        code: String,
        /// What people read.
        message: String,
    },
}

impl Failure {
    /// A failure of another kind.
    #[must_use]
    pub fn other(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Other { status, code: code.into(), message: message.into() }
    }
}
