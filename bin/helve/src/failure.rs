//! Errors of commands: message, hint, error kind and exit status.

use std::fmt;
use std::process::ExitCode;

use helve::AgentError;
use helve::agent::OpenAgentError;
use helve::internal::{printable, suggest};
use helve::model::ChooseModelError;
use helve::project::{ChooseAgentError, StateError};
use helve::store::{OpenStoreError, StoreError};
use serde_json::json;

use crate::terminal;

/// Exit status after SIGINT (Ctrl-C).
pub const INTERRUPTED: u8 = 130;
/// Exit status after SIGTERM.
pub const TERMINATED: u8 = 143;
/// Exit status after SIGHUP.
pub const HUNG_UP: u8 = 129;

/// Prints what clap reports, and returns the exit status. Help and version go to stdout, usage errors to stderr and, with `--json`, also to
/// stdout as JSON.
pub fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render().ansi().to_string();
    if !error.use_stderr() {
        terminal::print(text.trim_end());
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().any(|argument| argument == "--json") {
        let plain = error.render().to_string();
        let words =
            plain.lines().take_while(|line| !line.starts_with("Usage:")).flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
        let first = words.trim_start_matches("error: ");
        terminal::json(json!({"error": {"kind": "bad_request", "message": printable::escape(first), "details": {}}}));
    }
    terminal::note(text.trim_end());
    ExitCode::from(2)
}

/// The failure of a command.
#[derive(Debug)]
pub struct Failure {
    kind: &'static str,
    message: String,
    hint: Option<String>,
    status: u8,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        use StoreError::{Conflict, Lost, NotFound};
        let kind = match error {
            NotFound(_) => "not_found",
            Conflict(_) | Lost => "conflict",
            _ => "storage",
        };
        let list = match &error {
            NotFound(what) if what.starts_with("run ") => Some("`helve runs` lists them"),
            NotFound(what) if what.starts_with("task ") => Some("`helve tasks` lists them"),
            NotFound(what) if what.starts_with("approval ") => Some("`helve approvals list --all` lists them"),
            _ => None,
        };
        Self { hint: list.map(str::to_owned), ..Self::new(kind, error) }
    }
}

impl From<OpenAgentError> for Failure {
    fn from(error: OpenAgentError) -> Self {
        match error {
            OpenAgentError::Choice(error) => error.into(),
            OpenAgentError::Run(AgentError::Storage(error)) => error.into(),
            OpenAgentError::Run(error) => error.into(),
            OpenAgentError::Model(error) => error.into(),
            OpenAgentError::Store(error) => error.into(),
            error => Self::new("failed", error),
        }
    }
}

impl From<ChooseAgentError> for Failure {
    fn from(error: ChooseAgentError) -> Self {
        Self::new("not_found", error).hint("`helve agents` lists agents; `helve tools check` reports errors in their files")
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        Self { hint: error.hint().map(str::to_owned), ..Self::new(error.kind(), &error) }
    }
}

impl From<ChooseModelError> for Failure {
    fn from(error: ChooseModelError) -> Self {
        Self::new("no_model", &error).hint(&error.hint)
    }
}

impl From<OpenStoreError> for Failure {
    fn from(error: OpenStoreError) -> Self {
        Self::new("storage", &error).hint(&error.hint)
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self::new("storage", error)
    }
}

impl Failure {
    /// Creates the failure of a valid command, with exit status 1.
    pub fn new(kind: &'static str, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), hint: None, status: 1 }
    }

    /// Creates the failure of an invalid command line, with exit status 2.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { status: 2, ..Self::new("bad_request", message) }
    }

    /// Creates the failure of a command that the user interrupted with Ctrl-C.
    pub fn interrupted(message: impl fmt::Display) -> Self {
        Self { status: INTERRUPTED, ..Self::new("cancelled", message) }
    }

    /// Sets the hint: what to do next.
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Sets the hint to the nearest known name, or to `otherwise` if no name is near.
    pub fn suggest<'a>(self, written: &str, known: impl IntoIterator<Item = &'a str>, otherwise: &str) -> Self {
        match suggest::nearest(written, known) {
            Some(near) => self.hint(format_args!("did you mean `{near}`?")),
            None => self.hint(otherwise),
        }
    }

    /// Prints the error on stderr and, with `json`, also as JSON on stdout. Returns the exit status.
    pub fn show(&self, json: bool) -> ExitCode {
        let clean = printable::escape;
        if json {
            let details = self.hint.as_deref().map_or_else(|| json!({}), |hint| json!({"hint": clean(hint)}));
            terminal::json(json!({"error": {"kind": self.kind, "message": clean(&self.message), "details": details}}));
        }
        terminal::error(&clean(&self.message), self.hint.as_deref().map(clean).as_deref());
        ExitCode::from(self.status)
    }
}
