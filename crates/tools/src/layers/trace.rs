//! Every call is seen: one line at INFO and a span, both without secrets, and outcomes that carry none.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use helve_core::printable::{escape_line, shorten};
use helve_core::{ApprovalRequest, Outcome, Output, Redactor, Status, ToolCall, ToolError};
use tracing::{Instrument, Level, Span};

use crate::catalogue::Entry;

/// How much of arguments and results a log line shows.
const SHOWN: usize = 400;

/// Watches calls and makes their outcomes.
pub(crate) struct Trace {
    redactor: Redactor,
}

impl Trace {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor }
    }

    /// The secrets that must not show.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Makes the outcome of a call, without secrets, and reports it.
    pub(crate) fn finish(&self, call: &ToolCall, entry: &Entry, result: Result<Output, ToolError>, begun: Instant) -> Outcome {
        self.report(call, entry.name().clone(), Some(entry), result, begun)
    }

    /// The same for a call of a tool that does not exist.
    pub(crate) fn unknown(&self, call: &ToolCall, error: ToolError, begun: Instant) -> Outcome {
        // The name is a stranger's: it may be long, and hold lines that look like ours. Redact before cutting.
        let name = self.redactor.clean(&call.tool).unwrap_or_else(|| call.tool.to_string());
        self.report(call, shorten(&escape_line(&name), 80).into(), None, Err(error), begun)
    }

    fn report(&self, call: &ToolCall, tool: Arc<str>, entry: Option<&Entry>, result: Result<Output, ToolError>, begun: Instant) -> Outcome {
        let cause = result.as_ref().err().and_then(|error| std::error::Error::source(error).map(ToString::to_string));
        let mut outcome = Outcome { call_id: call.id, tool, status: Status::Done(result), duration: begun.elapsed() };
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

/// Runs work inside the span of its call. The field names are those of OpenTelemetry's `GenAI` conventions.
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

/// Reports that a call waits for a person.
pub(crate) fn waiting(request: &ApprovalRequest) {
    tracing::info!(call = %request.call.id, tool = %request.tool, approval = %request.id, reason = %request.reason, "tool call waits for approval");
}
