//! One agent at work for a person: its model, its approvals, its runs.

use std::process::ExitCode;
use std::sync::Arc;

use parking_lot::Mutex;
use std::time::Duration;

use helve::agent::Answer;
use helve::event::{EndOfRun, EventData};
use helve::id::RunId;
use helve::internal::printable;
use helve::permission::Decision;
use helve::project::ProjectAgent;
use helve::{Agent, AgentError};
use serde_json::json;

use super::approver::{Always, TerminalApprover};
use super::editor::Editor;
use super::show::Show;
use super::spinner::Spinner;
use crate::cli::{Approve, Global};
use crate::failure::{Failure, INTERRUPTED};
use crate::terminal::{self, FAINT, styled};
use crate::workspace::Workspace;

/// How often the status line moves.
const TICK: Duration = Duration::from_millis(100);

/// An agent with its model.
pub struct Session {
    /// The agent.
    pub agent: Agent,
    /// What its file says.
    pub file: Option<ProjectAgent>,
    /// Whether the last event that was told says how the run ended.
    pub told: bool,
}

/// What is to be answered.
#[derive(Clone, Copy)]
pub enum Asked<'a> {
    /// A request.
    Now(&'a str),
    /// A run that waited, or whose process ended.
    Before(RunId),
}

/// How a session is set up.
pub struct Setup<'a> {
    pub global: &'a Global,
    pub workspace: &'a Workspace,
    pub agent: Option<&'a str>,
    pub approve: Approve,
    pub editor: Option<Arc<Mutex<Editor>>>,
    pub spinner: &'a Spinner,
}

impl Session {
    /// Chooses agent and model.
    pub async fn open(setup: &Setup<'_>) -> Result<Self, Failure> {
        let helve = setup.workspace.helve();
        let opened = helve.open_agent(setup.agent, &setup.global.agent_choice()).await?;
        if let Some(because) = &opened.because {
            terminal::note(&styled(FAINT, &printable::escape_line(&format!("model: {because}"))));
        }
        let agent = opened.agent;
        let agent = match (setup.approve, &setup.editor) {
            (Approve::Yes, _) => agent.with_approver(Always(Decision::Approve)),
            (Approve::No, _) => agent.with_approver(Always(Decision::Deny { reason: None })),
            (Approve::Ask, Some(editor)) => agent.with_approver(TerminalApprover {
                editor: editor.clone(),
                spinner: setup.spinner.clone(),
                redactor: helve.redactor().clone(),
            }),
            (Approve::Ask, None) => agent,
        };
        Ok(Self { agent, file: opened.file, told: false })
    }

    /// A session with an agent that is at hand.
    pub fn of(agent: Agent) -> Self {
        Self { agent, file: None, told: false }
    }

    /// Lets go of what this process holds of the store.
    pub async fn close(&self, helve: &helve::Helve) {
        helve.told().await;
        if let Some(store) = self.agent.store()
            && let Err(error) = store.close().await
        {
            tracing::debug!(%error, "the store was not told that this process ends");
        }
    }

    /// Answers one request or goes on with a run, and shows what happens. Ctrl-C cancels it.
    pub async fn answer(&mut self, asked: Asked<'_>, show: &mut Show, json: bool) -> Result<Answer, AgentError> {
        use futures_util::StreamExt;
        self.told = false;
        let mut stream = match asked {
            Asked::Now(input) => self.agent.run_stream(input).await?,
            Asked::Before(run) => self.agent.resume_run_stream(run).await?,
        };
        let cancel = stream.canceller();
        let mut ticks = tokio::time::interval(TICK);
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        let ended = loop {
            tokio::select! {
                biased;
                _ = &mut interrupt, if !cancel.is_cancelled() => cancel.cancel(),
                event = stream.next() => match event {
                    Some(Ok(event)) => {
                        self.told = matches!(event.data, EventData::RunFinished { .. } | EventData::RunFailed { .. });
                        if json { print_event(&event) } else { show.event(&event) }
                    }
                    Some(Err(error)) => break Err(error),
                    None => break Ok(()),
                },
                _ = ticks.tick() => show.tick(),
            }
        };
        let answer = stream.answer().cloned();
        drop(stream);
        show.end_line();
        ended?;
        answer.ok_or(AgentError::Over)
    }

    /// How a run ended, for people, for programs and for the shell.
    pub fn ended(&self, result: Result<Answer, AgentError>) -> Result<ExitCode, Failure> {
        match result {
            Ok(_) => Ok(ExitCode::SUCCESS),
            Err(AgentError::Waiting(paused)) => {
                for request in &paused.requests {
                    let tool = printable::escape_line(&request.tool);
                    let (what, how) = match request.input {
                        Some(_) => ("wants to know something", "show|approve|deny"),
                        None => ("must be approved", "approve|deny"),
                    };
                    terminal::note(&format!("waiting: {tool} {what}: helve approvals {how} {}", request.id));
                }
                terminal::note(&format!("Then go on with: helve run --resume {}", paused.run.id()));
                Ok(ExitCode::from(3))
            }
            Err(AgentError::Stopped { reason: EndOfRun::Cancelled, .. }) => {
                terminal::note(&styled(FAINT, "cancelled"));
                Ok(ExitCode::from(INTERRUPTED))
            }
            Err(error) => {
                let failure = Failure::new(error.kind(), &error);
                let failure = match error.hint() {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                };
                // Programs have read the event that says so, unless the run did not even begin.
                if self.told { Ok(failure.show(false)) } else { Err(failure) }
            }
        }
    }
}

/// One event as a line of JSON. How the model writes its calls is no part of the contract.
fn print_event(event: &helve::event::Event) {
    if !matches!(event.data, EventData::CallDelta { .. }) {
        terminal::json(json!(event));
    }
}

/// What a conversation cost, in a few words.
pub fn cost(usage: &helve::model::Usage) -> String {
    let money = usage.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    format!("{} tokens read, {} written{money}", usage.input_tokens, usage.output_tokens)
}
