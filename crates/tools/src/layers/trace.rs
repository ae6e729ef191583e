//! Creates the outcome of every call and logs it, as one line at INFO and a span. Both are without secrets.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use helve_core::printable::{escape_line, shorten};
use helve_core::{ApprovalRequest, Outcome, Output, Redactor, Status, ToolCall, ToolError};
use tracing::{Instrument, Level, Span};

use crate::catalogue::Entry;

/// Maximum length of arguments and results in a log line, in characters.
const SHOWN: usize = 400;

/// Logs calls and creates their outcomes.
pub(crate) struct Trace {
    redactor: Redactor,
}

impl Trace {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor }
    }

    /// Returns the redactor that removes secrets.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Creates the outcome of a call, without secrets, and logs it.
    pub(crate) fn finish(&self, call: &ToolCall, entry: &Entry, result: Result<Output, ToolError>, started: Instant) -> Outcome {
        self.report(call, entry.name().clone(), Some(entry), result, started)
    }

    /// Like [`Self::finish`], but for a tool that does not exist.
    pub(crate) fn unknown(&self, call: &ToolCall, error: ToolError, started: Instant) -> Outcome {
        // The name is untrusted: it may be long, or contain lines that imitate log lines. Redact before shortening.
        let name = self.redactor.clean(&call.tool).unwrap_or_else(|| call.tool.to_string());
        self.report(call, shorten(&escape_line(&name), 80).into(), None, Err(error), started)
    }

    fn report(
        &self,
        call: &ToolCall,
        tool: Arc<str>,
        entry: Option<&Entry>,
        result: Result<Output, ToolError>,
        started: Instant,
    ) -> Outcome {
        let cause = result.as_ref().err().and_then(|error| std::error::Error::source(error).map(ToString::to_string));
        let mut outcome = Outcome { call_id: call.id, tool, status: Status::Done(result), duration: started.elapsed() };
        self.redactor.clean_outcome(&mut outcome);
        if tracing::enabled!(Level::INFO) {
            let source = entry.map_or("none", |entry| entry.source().as_str());
            let arguments = self.redactor.log_line(&call.arguments, SHOWN);
            let result = self.redactor.log_text(&outcome.text(), SHOWN);
            let cause = cause.map(|cause| self.redactor.log_text(&cause, SHOWN));
            let (error, duration) = (outcome.error().map(|error| error.kind().name()), outcome.duration);
            tracing::info!(
                call = %call.id, tool = %outcome.tool, source, success = outcome.is_success(), error, cause, ?duration, arguments, result, "tool call"
            );
        }
        outcome
    }
}

/// Runs a future in the span of its call. The field names are those of OpenTelemetry's `GenAI` conventions.
pub(crate) fn watch<F: Future>(call: &ToolCall, entry: &Entry, work: F) -> impl Future<Output = F::Output> {
    let span = if tracing::enabled!(Level::INFO) {
        tracing::info_span!(
            "execute_tool",
            "gen_ai.operation.name" = "execute_tool",
            "gen_ai.tool.name" = %entry.name(),
            "gen_ai.tool.call.id" = %call.id
        )
    } else {
        Span::none()
    };
    work.instrument(span)
}

/// Logs that a call waits for a person.
pub(crate) fn waiting(request: &ApprovalRequest) {
    tracing::info!(call = %request.call.id, tool = %request.tool, approval = %request.id, reason = %request.reason, "tool call is waiting for approval");
}
