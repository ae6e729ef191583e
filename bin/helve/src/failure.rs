//! How a command fails: what, what next, and the exit status.

use std::fmt;
use std::process::ExitCode;

use helve::AgentError;
use helve::agent::OpenAgentError;
use helve::internal::printable;
use serde_json::json;

use crate::terminal;

/// What the shell says of a program that was interrupted.
pub const INTERRUPTED: u8 = 130;
/// The same of one that was told to end, and of one whose terminal is gone.
pub const TERMINATED: u8 = 143;
pub const HUNG_UP: u8 = 129;

/// What clap has to say: help and version on stdout, mistakes on stderr and, for programs, as JSON.
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

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub struct Failure {
    kind: &'static str,
    message: String,
    hint: Option<String>,
    status: u8,
}

impl From<helve::store::StoreError> for Failure {
    fn from(error: helve::store::StoreError) -> Self {
        use helve::store::StoreError::{Conflict, Lost, NotFound};
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
            OpenAgentError::Choice(error) => {
                Self::new("not_found", error).hint("`helve agents` lists them, and `helve tools check` says what is wrong")
            }
            OpenAgentError::Run(AgentError::Storage(error)) => error.into(),
            OpenAgentError::Run(error) => Self::new(error.kind(), error),
            OpenAgentError::Model(error) => Self::new("no_model", &error).hint(&error.hint),
            OpenAgentError::Store(error) => Self::new("storage", &error).hint(&error.hint),
            error => Self::new("failed", error),
        }
    }
}

impl Failure {
    /// The command was understood and could not be done.
    pub fn new(kind: &'static str, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), hint: None, status: 1 }
    }

    /// The command was not understood.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { status: 2, ..Self::new("bad_request", message) }
    }

    /// Somebody pressed Ctrl-C.
    pub fn interrupted(message: impl fmt::Display) -> Self {
        Self { status: INTERRUPTED, ..Self::new("cancelled", message) }
    }

    /// The same failure, with what to do next.
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Says it to the person, and to the program where one is listening.
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
