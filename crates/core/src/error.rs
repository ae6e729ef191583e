//! What can go wrong with a call: a closed list of kinds in one table, and the error that carries one.
//!
//! An error has two readers. Its `Display` and [`ToolError::for_model`] are for the model; its `source()` and the
//! table's operator column are for the person who runs Helve.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::input::InputNeeded;

/// The closed list of reasons why a call did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No such tool for this caller.
    UnknownTool,
    /// The arguments do not fit the tool's schema.
    InvalidParameters,
    /// A rule or a person said no; `details.reason` says which.
    PermissionDenied,
    /// The tool took longer than it may.
    Timeout,
    /// The caller gave up.
    Cancelled,
    /// Too many calls; `details.retry_after_ms` where the delay is known.
    RateLimited,
    /// The other side could not be reached.
    Unreachable,
    /// The process ended while the tool ran, and running it again could do harm.
    Interrupted,
    /// The tool answered with something its output schema does not allow.
    InvalidOutput,
    /// The record could not be written or read.
    Storage,
    /// The tool says it failed.
    Failed,
}

/// One row of the table of kinds.
#[derive(Debug, Clone, Copy)]
pub struct KindFacts {
    /// The kind the row is about.
    pub kind: ErrorKind,
    /// How the kind is written everywhere.
    pub name: &'static str,
    /// Whether trying the same call again can help.
    pub retryable: bool,
    /// What the model reads after the message.
    pub for_model: &'static str,
    /// Where an operator should look.
    pub for_operator: &'static str,
}

/// Every kind, once.
pub const KINDS: [KindFacts; 11] = {
    use ErrorKind::{
        Cancelled, Failed, Interrupted, InvalidOutput, InvalidParameters, PermissionDenied, RateLimited, Storage, Timeout, UnknownTool,
        Unreachable,
    };
    const fn row(kind: ErrorKind, name: &'static str, retryable: bool, for_model: &'static str, for_operator: &'static str) -> KindFacts {
        KindFacts { kind, name, retryable, for_model, for_operator }
    }
    [
        row(UnknownTool, "unknown_tool", false, "Use only the tools you were given.", "The model named a tool outside its toolkit."),
        row(
            InvalidParameters,
            "invalid_parameters",
            false,
            "Correct the arguments and call again.",
            "The model's arguments do not fit the tool's input schema.",
        ),
        row(
            PermissionDenied,
            "permission_denied",
            false,
            "Do not try this call again; go on without it or ask the user.",
            "A permission rule, a person or a pin refused the call.",
        ),
        row(Timeout, "timeout", true, "It may help to ask for less at once.", "The tool passed its timeout; see its rules."),
        row(Cancelled, "cancelled", false, "The caller cancelled this call.", "The caller went away or cancelled."),
        row(RateLimited, "rate_limited", true, "Wait before you call this tool again.", "A limit of Helve or of the service was reached."),
        row(
            Unreachable,
            "unreachable",
            true,
            "The service is not available now; go on without it.",
            "No connection to the tool's server or device.",
        ),
        row(
            Interrupted,
            "interrupted",
            false,
            "It is not known whether the call took effect; check before you call again.",
            "The process ended during a call that is not idempotent.",
        ),
        row(
            InvalidOutput,
            "invalid_output",
            false,
            "The tool is faulty; do not rely on it.",
            "The tool's result breaks its own output schema.",
        ),
        row(Storage, "storage", true, "The call could not be recorded and was not made.", "The store failed; see its log."),
        row(Failed, "failed", false, "", "The tool itself reported a failure."),
    ]
};

impl ErrorKind {
    /// The row of the table for this kind.
    #[must_use]
    pub fn facts(self) -> &'static KindFacts {
        // The table is in the order of the enum, which a test holds.
        &KINDS[self as usize]
    }

    /// The kind as it is written in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a call was not permitted: the `details.reason` of `permission_denied`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denial {
    /// A person said no.
    Denied,
    /// No one answered in time.
    Expired,
    /// A rule forbids it.
    Policy,
    /// The tool's definition changed and has not been approved.
    Unpinned,
}

/// Why one call did not succeed.
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
    /// An error of a kind, with the sentence the model will read.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Body { kind, message: message.into(), details: Map::new(), transient: None, source: None, input: None }))
    }

    /// The tool itself failed.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// The arguments do not fit.
    #[must_use]
    pub fn invalid_parameters(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParameters, message)
    }

    /// The call is not permitted.
    #[must_use]
    pub fn denied(reason: Denial, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::PermissionDenied, message).with("reason", json!(reason))
    }

    /// The caller gave up.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the call was cancelled")
    }

    /// The tool cannot go on before a person has answered something. Where nobody can be asked, this is a failure.
    #[must_use]
    pub fn needs_input(needed: InputNeeded) -> Self {
        let mut error = Self::failed(needed.summary());
        error.0.input = Some(needed);
        error
    }

    /// What a person must answer before the tool can go on.
    #[must_use]
    pub fn input(&self) -> Option<&InputNeeded> {
        self.0.input.as_ref()
    }

    /// Adds one field to `details`.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.0.details.insert(key.to_owned(), value);
        self
    }

    /// The same error, as one about the arguments unless it says what it is about.
    pub(crate) fn about_arguments(mut self) -> Self {
        if self.0.kind == ErrorKind::Failed {
            self.0.kind = ErrorKind::InvalidParameters;
        }
        self
    }

    /// The same error in other words.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    /// Keeps the cause for operators; the model never sees it.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(cause));
        self
    }

    /// Says that trying again may (or will not) help, where the kind alone does not decide it.
    #[must_use]
    pub fn transient(mut self, transient: bool) -> Self {
        self.0.transient = Some(transient);
        self
    }

    /// Says how long to wait before the next try.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.with("retry_after_ms", json!(millis))
    }

    /// Which of the closed list it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence about this case.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Facts for programs.
    #[must_use]
    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.transient.unwrap_or(self.0.kind.facts().retryable)
    }

    /// The wait that the other side asked for.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.0.details.get("retry_after_ms").and_then(Value::as_u64).map(Duration::from_millis)
    }

    /// What the model reads: the kind, the message, and what to do next.
    #[must_use]
    pub fn for_model(&self) -> String {
        let facts = self.0.kind.facts();
        let stop = if self.0.message.ends_with(['.', '!', '?']) || facts.for_model.is_empty() { "" } else { "." };
        format!("{}: {}{stop} {}", facts.name, self.0.message, facts.for_model).trim_end().to_owned()
    }

    /// Rewrites every text of the error, to redact it.
    pub(crate) fn map_text(&mut self, how: &dyn crate::secret::Rewrite) {
        if let Some(clean) = how.text(&self.0.message) {
            self.0.message = clean;
        }
        crate::secret::rewrite_map(&mut self.0.details, how);
        // A cause is a foreign type whose text cannot be rewritten, so a redacted error keeps only what is clean.
        let mut cause = self.source();
        let mut dirty = false;
        while let Some(link) = cause {
            dirty |= how.text(&link.to_string()).is_some() || how.text(&format!("{link:?}")).is_some();
            cause = link.source();
        }
        if dirty {
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
