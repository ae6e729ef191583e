//! Shows what happens in a run: words as they come, calls while they run, results in a few lines.

use std::collections::HashMap;
use std::io::{self, IsTerminal};

use helve::event::{EndOfRun, Event, EventData};
use helve::id::CallId;
use helve::internal::printable;

use super::markdown::Markdown;
use super::preview::{call_line, result_lines};
use super::spinner::{Running, Spinner};
use crate::terminal::{self, BAD, CAREFUL, FAINT, STRONG, styled};

/// Shows one run after the other.
pub struct Show {
    markdown: Markdown,
    spinner: Spinner,
    calls: HashMap<CallId, (String, Running)>,
    thinking: Option<Running>,
    /// Whether words are shown as they come; else the answer is printed when it is complete.
    live: bool,
}

impl Show {
    /// Shows on this terminal; a pipe gets only the answer.
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
                let running = self.spinner.start(&line);
                self.calls.insert(*call_id, (line, running));
            }
            EventData::ToolProgress { call_id, message, .. } => {
                if let Some((line, _)) = self.calls.get(call_id) {
                    self.note(&styled(FAINT, &format!("  {line}: {}", printable::escape_line(message))));
                }
            }
            EventData::ToolComplete { call_id, outcome } => {
                let line = self.calls.remove(call_id).map_or_else(|| printable::escape_line(&outcome.tool), |(line, _)| line);
                let mark = if outcome.is_success() { styled(FAINT, "→") } else { styled(BAD, "→") };
                self.note(&format!("{mark} {}", styled(STRONG, &line)));
                for line in result_lines(&outcome.text(), outcome.is_success(), outcome.duration, width()) {
                    self.note(&line);
                }
            }
            EventData::StrategyChanged { to, reason, .. } => {
                self.note(&styled(FAINT, &format!("({}; calls are carried as {to} now)", printable::escape_line(reason))));
            }
            EventData::Notification { message } => self.note(&styled(CAREFUL, &printable::escape_line(message))),
            EventData::ToolsChanged { added, removed } => {
                let list = |names: &[std::sync::Arc<str>]| names.join(", ");
                let text = match (added.is_empty(), removed.is_empty()) {
                    (false, true) => format!("(new tools: {})", list(added)),
                    (true, _) => format!("(tools that are gone: {})", list(removed)),
                    _ => format!("(new tools: {}; gone: {})", list(added), list(removed)),
                };
                self.note(&styled(FAINT, &printable::escape_line(&text)));
            }
            EventData::RunFinished { text, reason, .. } => self.finished(text, *reason),
            _ => {}
        }
    }

    /// Time passes.
    pub fn tick(&self) {
        self.spinner.tick();
    }

    fn finished(&mut self, text: &str, reason: EndOfRun) {
        self.end_line();
        // A tool's last words were not streamed, and a pipe has heard nothing yet.
        if !self.live || reason == EndOfRun::Stopped {
            let mut shown = self.markdown.push(text);
            shown.push_str(&self.markdown.finish());
            self.spinner.write(&shown);
        }
    }

    /// Ends what was being said.
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
