//! A session of a person with one agent, which `helve chat`, `run` and `demo` share.

pub mod approval_prompt;
mod approver;
mod edit_arguments;
pub mod input_prompt;
pub mod run_view;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use helve::agent::Answer;
use helve::event::{EndOfRun, Event, EventData};
use helve::id::RunId;
use helve::internal::printable;
use helve::permission::Decision;
use helve::project::ProjectAgent;
use helve::{Agent, AgentError, Helve};
use parking_lot::Mutex;
use serde_json::json;

use self::approver::{FixedDecision, TerminalApprover};
use self::run_view::RunView;
use crate::cli::{Approve, Global};
use crate::failure::{Failure, INTERRUPTED};
use crate::terminal;
use crate::terminal::editor::Editor;
use crate::terminal::spinner::Spinner;
use crate::workspace::Workspace;

/// Interval between updates of the status line.
const TICK: Duration = Duration::from_millis(100);

/// An agent with its model.
pub struct Session {
    pub agent: Agent,
    /// The agent's file; `None` if no file describes it.
    pub file: Option<ProjectAgent>,
    /// Whether the last event of the run reported how it ended.
    pub ended: bool,
}

/// The input of a run.
#[derive(Clone, Copy)]
pub enum RunInput<'a> {
    /// A new prompt.
    Prompt(&'a str),
    /// A run that waits or was interrupted.
    Resume(RunId),
}

/// Options of a session.
pub struct SessionOptions<'a> {
    pub global: &'a Global,
    pub workspace: &'a Workspace,
    pub agent: Option<&'a str>,
    pub approve: Approve,
    /// Reads decisions from the terminal; if `None`, calls that need approval wait.
    pub editor: Option<Arc<Mutex<Editor>>>,
    pub spinner: &'a Spinner,
}

impl Session {
    /// Opens a session: chooses the agent and its model.
    pub async fn open(options: &SessionOptions<'_>) -> Result<Self, Failure> {
        let helve = options.workspace.helve();
        let opened = helve.open_agent(options.agent, &options.global.agent_choice()).await?;
        if let Some(because) = &opened.because {
            terminal::note_faintly(&printable::escape_line(&format!("model: {because}")));
        }
        let agent = opened.agent;
        let agent = match (options.approve, &options.editor) {
            (Approve::Yes, _) => agent.with_approver(FixedDecision(Decision::Approve)),
            (Approve::No, _) => agent.with_approver(FixedDecision(Decision::Deny { reason: None })),
            (Approve::Ask, Some(editor)) => agent.with_approver(TerminalApprover {
                editor: editor.clone(),
                spinner: options.spinner.clone(),
                redactor: helve.redactor().clone(),
            }),
            (Approve::Ask, None) => agent,
        };
        Ok(Self { agent, file: opened.file, ended: false })
    }

    /// Creates a session with an agent that no file describes.
    pub fn of(agent: Agent) -> Self {
        Self { agent, file: None, ended: false }
    }

    /// Sends pending webhook notifications, then releases this process's leases in the store.
    pub async fn close(&self, helve: &Helve) {
        helve.flush_webhook().await;
        if let Some(store) = self.agent.store()
            && let Err(error) = store.close().await
        {
            tracing::debug!(%error, "cannot release the leases of this process");
        }
    }

    /// Runs the agent, and shows events as JSON lines with `json`, otherwise in the view. Ctrl-C cancels the run.
    pub async fn run(&mut self, input: RunInput<'_>, view: &mut RunView, json: bool) -> Result<Answer, AgentError> {
        self.ended = false;
        let mut stream = match input {
            RunInput::Prompt(prompt) => self.agent.run_stream(prompt).await?,
            RunInput::Resume(run) => self.agent.resume_run_stream(run).await?,
        };
        let cancel = stream.canceller();
        let mut ticks = tokio::time::interval(TICK);
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        let streamed = loop {
            tokio::select! {
                biased;
                _ = &mut interrupt, if !cancel.is_cancelled() => cancel.cancel(),
                event = stream.next() => match event {
                    Some(Ok(event)) => {
                        self.ended = matches!(event.data, EventData::RunFinished { .. } | EventData::RunFailed { .. });
                        if json { print_event(&event) } else { view.event(&event) }
                    }
                    Some(Err(error)) => break Err(error),
                    None => break Ok(()),
                },
                _ = ticks.tick() => view.tick(),
            }
        };
        let answer = stream.answer().cloned();
        drop(stream);
        view.end_line();
        streamed?;
        answer.ok_or(AgentError::Over)
    }

    /// Reports how a run ended, and returns the exit status.
    pub fn report(&self, result: Result<Answer, AgentError>) -> Result<ExitCode, Failure> {
        match result {
            Ok(_) => Ok(ExitCode::SUCCESS),
            Err(AgentError::Waiting(paused)) => {
                for request in &paused.requests {
                    let (tool, id) = (printable::escape_line(&request.tool), request.id);
                    let (what, input) = match request.input {
                        Some(_) => (format!("requests input\n  show:    helve approvals show {id}"), " --arguments JSON"),
                        None => ("needs approval".to_owned(), ""),
                    };
                    terminal::note(&format!("waiting: {tool} {what}"));
                    terminal::note(&format!("  approve: helve approvals approve {id}{input}\n  deny:    helve approvals deny {id}"));
                }
                terminal::note(&format!("  then:    helve runs resume {}", paused.run.id()));
                Ok(ExitCode::from(3))
            }
            Err(AgentError::Stopped { reason: EndOfRun::Cancelled, .. }) => {
                terminal::note_faintly("cancelled");
                Ok(ExitCode::from(INTERRUPTED))
            }
            Err(error) => {
                let failure = Failure::from(error);
                // With `--json`, the last event has reported the error already.
                if self.ended { Ok(failure.show(false)) } else { Err(failure) }
            }
        }
    }
}

/// Prints one event as a line of JSON. Deltas of calls are not part of the contract.
fn print_event(event: &Event) {
    if !matches!(event.data, EventData::CallDelta { .. }) {
        terminal::json(json!(event));
    }
}
