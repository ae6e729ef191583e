//! Errors of tool calls: the table of error kinds, and the error type.
//!
//! An error has two readers. `Display` and [`ToolError::for_model`] are for the model; `source()` is for operators.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::input::InputNeeded;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The caller has no tool of this name.
    UnknownTool,
    /// The arguments do not match the tool's schema.
    InvalidParameters,
    /// A rule or a person denied the call. `details.reason` says which; see [`Denial`].
    PermissionDenied,
    /// The call timed out.
    Timeout,
    /// The caller cancelled the call.
    Cancelled,
    /// Too many calls. `details.retry_after_ms` contains the delay before a retry, if known.
    RateLimited,
    /// The server or device cannot be reached.
    Unreachable,
    /// The process ended during the call, and the tool is not idempotent.
    Interrupted,
    /// The tool's result does not match its output schema.
    InvalidOutput,
    /// The store failed.
    Storage,
    /// The tool reported a failure.
    Failed,
}

/// One row of the table of error kinds.
#[derive(Debug, Clone, Copy)]
pub struct KindFacts {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The name of the kind in JSON.
    pub name: &'static str,
    /// Whether a retry of the same call may succeed.
    pub retryable: bool,
    /// The advice that the model reads after the message.
    pub for_model: &'static str,
}

/// The table of error kinds, one row for each kind.
pub const KINDS: [KindFacts; 11] = {
    const fn row(kind: ErrorKind, retryable: bool, for_model: &'static str) -> KindFacts {
        KindFacts { kind, name: kind.name(), retryable, for_model }
    }
    [
        row(ErrorKind::UnknownTool, false, "Use only the tools you were given."),
        row(ErrorKind::InvalidParameters, false, "Correct the arguments and call again."),
        row(ErrorKind::PermissionDenied, false, "Do not try this call again; continue without it or ask the user."),
        row(ErrorKind::Timeout, true, "It may help to ask for less at once."),
        row(ErrorKind::Cancelled, false, "The caller cancelled this call."),
        row(ErrorKind::RateLimited, true, "Wait before you call this tool again."),
        row(ErrorKind::Unreachable, true, "The service is not available now; continue without it."),
        row(ErrorKind::Interrupted, false, "It is not known whether the call took effect; check before you call again."),
        row(ErrorKind::InvalidOutput, false, "The tool is faulty; do not rely on it."),
        row(ErrorKind::Storage, true, "The call could not be recorded and did not run."),
        row(ErrorKind::Failed, false, ""),
    ]
};

impl ErrorKind {
    /// Returns the row of the table for this kind.
    #[must_use]
    pub fn facts(self) -> &'static KindFacts {
        // A test checks that the table is in the order of the enum.
        &KINDS[self as usize]
    }
}

/// Why a call was denied: the `details.reason` of `permission_denied`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denial {
    /// A person denied the call.
    Denied,
    /// The approval request expired.
    Expired,
    /// A rule denies the call.
    Policy,
    /// The tool's definition changed, and a person has not approved the change.
    Unpinned,
}

/// The error of a failed call.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolError(Box<Body>);

#[derive(Clone, Serialize, Deserialize)]
struct Body {
    kind: ErrorKind,
    message: String,
    #[serde(default)]
    details: Map<String, Value>,
    #[serde(skip)]
    transient: Option<bool>,
    #[serde(skip)]
    source: Option<Arc<dyn Error + Send + Sync>>,
    #[serde(skip)]
    input: Option<InputNeeded>,
}

impl ToolError {
    /// Creates an error with a message for the model.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Body { kind, message: message.into(), details: Map::new(), transient: None, source: None, input: None }))
    }

    /// Creates an error of kind `failed`.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Creates an error of kind `invalid_parameters`.
    #[must_use]
    pub fn invalid_parameters(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParameters, message)
    }

    /// Creates an error of kind `permission_denied`.
    #[must_use]
    pub fn denied(reason: Denial, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::PermissionDenied, message).with("reason", json!(reason))
    }

    /// Creates an error of kind `cancelled`.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the call was cancelled")
    }

    /// Creates an error that asks a person for input. If no person can be asked, the call fails with this error.
    #[must_use]
    pub fn needs_input(needed: InputNeeded) -> Self {
        let mut error = Self::failed(needed.summary());
        error.0.input = Some(needed);
        error
    }

    /// Returns the input that the tool needs from a person.
    #[must_use]
    pub fn input(&self) -> Option<&InputNeeded> {
        self.0.input.as_ref()
    }

    /// Adds one field to the error's `details`.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.0.details.insert(key.to_owned(), value);
        self
    }

    /// Changes the kind `failed` to `invalid_parameters`.
    pub(crate) fn about_arguments(mut self) -> Self {
        if self.0.kind == ErrorKind::Failed {
            self.0.kind = ErrorKind::InvalidParameters;
        }
        self
    }

    /// Sets the message.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    /// Sets the cause for operators. The model never reads it.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(cause));
        self
    }

    /// Sets whether a retry may succeed. This overrides the default of the kind.
    #[must_use]
    pub fn transient(mut self, transient: bool) -> Self {
        self.0.transient = Some(transient);
        self
    }

    /// Sets the delay before a retry.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.with("retry_after_ms", json!(millis))
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message for the model, without kind and advice.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the details for programs.
    #[must_use]
    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }

    /// Returns whether a retry of the same call may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.transient.unwrap_or(self.0.kind.facts().retryable)
    }

    /// Returns the delay before a retry, if known.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.0.details.get("retry_after_ms").and_then(Value::as_u64).map(Duration::from_millis)
    }

    /// Returns the text for the model: kind, message and advice.
    #[must_use]
    pub fn for_model(&self) -> String {
        let facts = self.0.kind.facts();
        let stop = if self.0.message.ends_with(['.', '!', '?']) || facts.for_model.is_empty() { "" } else { "." };
        format!("{}: {}{stop} {}", facts.name, self.0.message, facts.for_model).trim_end().to_owned()
    }

    /// Rewrites every text of the error, for redaction.
    pub(crate) fn map_text(&mut self, how: &dyn crate::secret::Rewrite) {
        if let Some(clean) = how.text(&self.0.message) {
            self.0.message = clean;
        }
        crate::secret::rewrite_map(&mut self.0.details, how);
        // The text of a cause cannot be rewritten, so all causes are dropped if one contains a secret.
        let dirty = |link: &(dyn Error + 'static)| how.text(&link.to_string()).is_some() || how.text(&format!("{link:?}")).is_some();
        if crate::any_error::chain(self).skip(1).any(dirty) {
            self.0.source = None;
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("details", &self.0.details)
            .field("source", &self.0.source)
            .finish()
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_ref().map(|cause| &**cause as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_kinds_and_names_match_the_wire() {
        for (index, row) in KINDS.iter().enumerate() {
            assert_eq!(row.kind as usize, index);
            assert_eq!(json!(row.kind), json!(row.name));
        }
    }

    #[test]
    fn the_model_reads_kind_message_and_advice() {
        let error = ToolError::new(ErrorKind::UnknownTool, "there is no tool `ad`");
        assert_eq!(error.for_model(), "unknown_tool: there is no tool `ad`. Use only the tools you were given.");
        assert_eq!(ToolError::failed("no such row").for_model(), "failed: no such row");
    }

    #[test]
    fn an_error_survives_the_wire_without_its_cause() {
        let error = ToolError::denied(Denial::Expired, "no answer").caused_by(std::io::Error::other("operators only"));
        let wire = json!(error);
        assert_eq!(wire, json!({"kind": "permission_denied", "message": "no answer", "details": {"reason": "expired"}}));
        let back: ToolError = serde_json::from_value(wire).expect("readable");
        assert_eq!((back.kind(), back.message()), (error.kind(), error.message()));
        assert!(error.source().is_some() && back.source().is_none());
    }

    #[test]
    fn a_result_with_an_error_is_small() {
        assert_eq!(size_of::<ToolError>(), size_of::<usize>());
    }
}
