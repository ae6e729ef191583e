//! Asks the person at the terminal about calls that must be confirmed, one request at a time.

use std::sync::Arc;

use helve::internal::json::{self, JsonLimits};
use helve::permission::{ApprovalRequest, Approver, Decision};
use helve::secret::Redactor;
use parking_lot::Mutex;
use serde_json::Value;

use super::approval_prompt::{self, Language, Reply};
use super::editor::{Editor, Input};
use super::spinner::Spinner;
use crate::commands::tools::{approve, input};
use crate::terminal;

/// Asks at the terminal.
#[derive(Clone)]
pub struct TerminalApprover {
    /// Reads the answers.
    pub editor: Arc<Mutex<Editor>>,
    /// Steps aside meanwhile.
    pub spinner: Spinner,
    /// Knows what must not be shown.
    pub redactor: Redactor,
}

impl Approver for TerminalApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        let (me, request) = (self.clone(), request.clone());
        // The person may think for long, and other calls go on.
        let asked = tokio::task::spawn_blocking(move || me.ask_now(&request)).await;
        asked.unwrap_or(Decision::Later)
    }
}

impl TerminalApprover {
    fn ask_now(&self, asked: &ApprovalRequest) -> Decision {
        let mut editor = self.editor.lock();
        let language = Language::of_environment();
        self.spinner.suspend(|| {
            if let Some(needed) = &asked.input {
                terminal::forget_typed();
                let mut read = |prompt: &str| if let Input::Line(line) = editor.ask(prompt, "") { Some(line) } else { None };
                return match input::ask(&asked.tool, needed, &mut read) {
                    Some(answer) => Decision::Edit(answer),
                    None => Decision::Deny { reason: None },
                };
            }
            approve::show(asked, &self.redactor);
            terminal::forget_typed();
            loop {
                let Input::Line(line) = editor.ask(&approval_prompt::prompt(language), "") else { return Decision::Deny { reason: None } };
                match approval_prompt::read(&line) {
                    Reply::Yes => return Decision::Approve,
                    Reply::Always => return Decision::Always,
                    Reply::No(reason) => return Decision::Deny { reason },
                    Reply::Edit => {
                        if let Some(arguments) = edit(&mut editor, &asked.call.arguments) {
                            return Decision::Edit(arguments);
                        }
                    }
                    Reply::Unclear => terminal::note(approval_prompt::again(language)),
                }
            }
        })
    }
}

/// Other arguments, as the person writes them in their editor or on one line.
fn edit(editor: &mut Editor, arguments: &Value) -> Option<Value> {
    let edited = approval_prompt::edit_arguments(arguments).unwrap_or_else(|| {
        let Input::Line(line) = editor.ask("JSON: ", &arguments.to_string()) else { return Err("nothing was changed".to_owned()) };
        json::parse(line.as_bytes(), JsonLimits::ARGUMENTS).map_err(|error| error.to_string())
    });
    match edited {
        Ok(value) if value.is_object() => Some(value),
        Ok(_) => {
            terminal::note("Arguments are one JSON object.");
            None
        }
        Err(error) => {
            terminal::note(&helve::internal::printable::escape(&error));
            None
        }
    }
}

/// Answers every request the same way.
pub struct Always(pub Decision);

impl Approver for Always {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        // Who lets calls run has not answered what their tools want to know.
        if request.input.is_some() { Decision::Deny { reason: None } } else { self.0.clone() }
    }
}
