//! Shows a run on the terminal: text as it streams, calls while they run, and the first lines of their results.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use helve::Outcome;
use helve::event::{EndOfRun, Event, EventData};
use helve::id::CallId;
use helve::internal::printable;
use helve::tool::Status;

use crate::terminal::markdown::Markdown;
use crate::terminal::preview::{call_line, result_lines};
use crate::terminal::spinner::{Spinner, StatusEntry};
use crate::terminal::{self, BAD, CAREFUL, FAINT, GOOD, STRONG, styled};

/// A view that shows runs on the terminal, one after the other.
pub struct RunView {
    markdown: Markdown,
    spinner: Spinner,
    calls: HashMap<CallId, (String, StatusEntry)>,
    thinking: Option<StatusEntry>,
    /// Whether text is shown as it streams; otherwise the answer is printed when it is complete.
    live: bool,
}

impl RunView {
    /// Creates a view on stdout and stderr. If stdout is not a terminal, it gets only the answer.
    pub fn new(spinner: Spinner) -> Self {
        let live = io::stdout().is_terminal();
        Self { markdown: Markdown::new(terminal::width(), live), spinner, calls: HashMap::new(), thinking: None, live }
    }

    /// Shows one event.
    pub fn event(&mut self, event: &Event) {
        match &event.data {
            EventData::ModelRequested { .. } => self.thinking = Some(self.spinner.start("…")),
            EventData::TextDelta { text } if self.live => {
                self.thinking = None;
                let shown = self.markdown.push(text);
                self.spinner.write(&shown);
            }
            EventData::ModelResponded { .. } | EventData::RunFailed { .. } => self.end_line(),
            EventData::ToolRequested { call_id, tool, arguments } => {
                self.end_line();
                let line = call_line(tool, arguments, width());
                let entry = self.spinner.start(&line);
                self.calls.insert(*call_id, (line, entry));
            }
            EventData::ToolProgress { call_id, message, .. } => {
                if let Some((line, _)) = self.calls.get(call_id) {
                    self.note(&styled(FAINT, &format!("  {line}: {}", printable::escape_line(message))));
                }
            }
            EventData::ToolComplete { call_id, outcome } => {
                let line = self.calls.remove(call_id).map_or_else(|| printable::escape_line(&outcome.tool), |(line, _)| line);
                self.result(&line, outcome);
            }
            EventData::StrategyChanged { to, reason, .. } => {
                self.note(&styled(FAINT, &format!("({}; switched to the call strategy {to})", printable::escape_line(reason))));
            }
            EventData::Notification { message } => self.note(&styled(CAREFUL, &printable::escape_line(message))),
            EventData::ToolsChanged { added, removed } => {
                let list = |what: &str, names: &[Arc<str>]| (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")));
                let changes: Vec<String> = list("tools added", added).into_iter().chain(list("tools removed", removed)).collect();
                self.note(&styled(FAINT, &printable::escape_line(&format!("({})", changes.join("; ")))));
            }
            EventData::RunFinished { text, reason, .. } => self.finished(text, *reason),
            _ => {}
        }
    }

    /// Updates the status line.
    pub fn tick(&self) {
        self.spinner.tick();
    }

    fn result(&self, call: &str, outcome: &Outcome) {
        // A background call is accepted, and another call waits for a person: neither has failed.
        let (arrow, mark) = match outcome.status {
            Status::Done(Ok(_)) => (FAINT, styled(GOOD, "✓")),
            Status::Done(Err(_)) => (BAD, styled(BAD, "✗")),
            Status::Accepted | Status::Waiting(_) => (FAINT, styled(CAREFUL, "…")),
        };
        self.note(&format!("{} {}", styled(arrow, "→"), styled(STRONG, call)));
        for line in result_lines(&mark, &outcome.text(), outcome.duration, width()) {
            self.note(&line);
        }
    }

    fn finished(&mut self, text: &str, reason: EndOfRun) {
        self.end_line();
        // The text of a tool that ended the run was not streamed, and a pipe gets the answer only now.
        if !self.live || reason == EndOfRun::Stopped {
            let mut shown = self.markdown.push(text);
            shown.push_str(&self.markdown.finish());
            self.spinner.write(&shown);
        }
    }

    /// Ends the text that was streamed last.
    pub fn end_line(&mut self) {
        self.thinking = None;
        let rest = self.markdown.finish();
        self.spinner.write(&rest);
    }

    fn note(&self, line: &str) {
        self.spinner.suspend(|| terminal::note(line));
    }
}

fn width() -> usize {
    terminal::width().min(120)
}
