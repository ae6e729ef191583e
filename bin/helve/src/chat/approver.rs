//! Asks the person at the terminal about calls that must be confirmed, one question at a time.

use std::sync::{Arc, Mutex, PoisonError};

use helve::internal::json::{self, Limits};
use helve::permission::{Answered, Approver, Question};
use helve::secret::Redactor;
use serde_json::Value;

use super::editor::{Editor, Input};
use super::question::{self, Language, Reply};
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
    async fn ask(&self, question: &Question) -> Answered {
        let (me, question) = (self.clone(), question.clone());
        // The person may think for long, and other calls go on.
        let asked = tokio::task::spawn_blocking(move || me.ask_now(&question)).await;
        asked.unwrap_or(Answered::Later)
    }
}

impl TerminalApprover {
    fn ask_now(&self, asked: &Question) -> Answered {
        let mut editor = self.editor.lock().unwrap_or_else(PoisonError::into_inner);
        let language = Language::of_environment();
        self.spinner.suspend(|| {
            if let Some(needed) = &asked.input {
                terminal::forget_typed();
                let mut read = |prompt: &str| if let Input::Line(line) = editor.ask(prompt, "") { Some(line) } else { None };
                return match input::ask(&asked.tool, needed, &mut read) {
                    Some(answer) => Answered::Edit(answer),
                    None => Answered::Deny { reason: None },
                };
            }
            approve::show(asked, &self.redactor);
            terminal::forget_typed();
            loop {
                let Input::Line(line) = editor.ask(&question::prompt(language), "") else { return Answered::Deny { reason: None } };
                match question::read(&line) {
                    Reply::Yes => return Answered::Approve,
                    Reply::Always => return Answered::Always,
                    Reply::No(reason) => return Answered::Deny { reason },
                    Reply::Edit => {
                        if let Some(arguments) = edit(&mut editor, &asked.call.arguments) {
                            return Answered::Edit(arguments);
                        }
                    }
                    Reply::Unclear => terminal::note(question::again(language)),
                }
            }
        })
    }
}

/// Other arguments, as the person writes them in their editor or on one line.
fn edit(editor: &mut Editor, arguments: &Value) -> Option<Value> {
    let edited = question::edit_arguments(arguments).unwrap_or_else(|| {
        let Input::Line(line) = editor.ask("JSON: ", &arguments.to_string()) else { return Err("nothing was changed".to_owned()) };
        json::parse(line.as_bytes(), Limits::ARGUMENTS).map_err(|error| error.to_string())
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

/// Answers every question the same way.
pub struct Always(pub Answered);

impl Approver for Always {
    async fn ask(&self, question: &Question) -> Answered {
        // Who lets calls run has not answered what their tools want to know.
        if question.input.is_some() { Answered::Deny { reason: None } } else { self.0.clone() }
    }
}
