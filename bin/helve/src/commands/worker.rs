//! `helve worker`: runs background calls, goes on with runs whose questions were answered or whose process ended, and lets agents
//! answer to results.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use helve::store::{RunState, TaskFilter};
use helve::{AgentError, CancellationToken, ConversationId, OnResult, Record};
use serde_json::json;

use super::run::described_agent;
use crate::chat::session::{Session, Setup};
use crate::chat::spinner::Spinner;
use crate::cli::records::Worker;
use crate::cli::{Approve, Global};
use crate::failure::Failure;
use crate::terminal::{self, FAINT, styled};
use crate::workspace::Workspace;

/// How often runs are looked for that nobody told of.
const LOOK: Duration = Duration::from_secs(1);
/// So many runs are looked at in a round.
const ROUND: usize = 100;
/// So many results that no agent was told of.
const RESULTS: usize = 1000;

/// Works until it is stopped, or until nothing is left.
pub fn run(command: &Worker, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    super::show_errors(workspace);
    let record = workspace.record(global)?;
    workspace.settle();
    let desk = Desk { command, global, workspace, record };
    workspace.block_on(async {
        let stop = CancellationToken::new();
        let interrupted = stop.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        let ended = if command.until_empty { desk.until_empty(&stop).await } else { desk.for_ever(&stop).await };
        workspace.helve().told().await;
        desk.record.close().await?;
        ended
    })
}

struct Desk<'a> {
    command: &'a Worker,
    global: &'a Global,
    workspace: &'a Workspace,
    record: Record,
}

impl Desk<'_> {
    fn worker(&self) -> helve::Worker {
        let helve = self.workspace.helve();
        helve::Worker::new(self.record.clone(), helve.executor().clone(), helve.catalogue().clone(), self.command.concurrency)
    }

    async fn until_empty(&self, stop: &CancellationToken) -> Result<ExitCode, Failure> {
        let (mut tasks, mut runs) = (0, 0);
        loop {
            let some_tasks = self.worker().run_until_empty(stop.clone()).await?;
            let some_runs = self.resume(stop).await? + self.wake(stop).await?;
            (tasks, runs) = (tasks + some_tasks, runs + some_runs);
            if some_tasks + some_runs == 0 || stop.is_cancelled() {
                break;
            }
        }
        if self.global.json {
            terminal::json(json!({"tasks_run": tasks, "runs_resumed": runs}));
        } else {
            let of = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
            terminal::print(&format!("{} run, {} resumed", of(tasks, "task"), of(runs, "run")));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn for_ever(&self, stop: &CancellationToken) -> Result<ExitCode, Failure> {
        terminal::note(&styled(FAINT, "working; Ctrl-C ends it, and what runs then goes back to the queue where it may"));
        let mut changes = self.record.store().changes();
        let resume = async {
            loop {
                for done in [self.resume(stop).await, self.wake(stop).await] {
                    if let Err(failure) = done {
                        let _ = failure.show(false);
                    }
                }
                tokio::select! {
                    Ok(()) = changes.changed() => {}
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        };
        tokio::select! {
            () = self.worker().run(stop.clone()) => {}
            () = resume => {}
            () = self.workspace.helve().follow() => {}
        }
        Ok(ExitCode::SUCCESS)
    }

    /// An agent at work without a person.
    async fn session(&self, agent: Option<&str>) -> Result<Session, Failure> {
        let spinner = Spinner::new();
        let (global, workspace) = (self.global, self.workspace);
        Session::open(&Setup { global, workspace, agent, approve: Approve::Ask, editor: None, spinner: &spinner }).await
    }

    /// Lets agents answer to results that nobody told them of, where their files say so. Says how many did.
    async fn wake(&self, stop: &CancellationToken) -> Result<usize, Failure> {
        let known = self.workspace.helve().project().unwrap_or_default();
        if known.agents.iter().all(|agent| agent.file.on_result != OnResult::Run) {
            return Ok(0);
        }
        let wakes = |name: &str| known.agents.iter().any(|agent| agent.file.name == name && agent.file.on_result == OnResult::Run);
        let unheard = self.record.store().tasks(TaskFilter { unheard: true, limit: RESULTS, ..TaskFilter::default() }).await?.into_iter();
        let waiting: BTreeMap<ConversationId, Arc<str>> =
            unheard.filter_map(|task| Some((task.caller.conversation?, task.caller.agent.filter(|agent| wakes(agent))?))).collect();
        let mut count = 0;
        for (conversation, agent) in waiting {
            if stop.is_cancelled() {
                break;
            }
            let mut session = self.session(Some(&agent)).await?;
            session.agent.open_conversation(conversation).await.map_err(|error| Failure::new(error.kind(), error))?;
            match session.agent.run_on_results().await {
                Ok(None) => {}
                Ok(Some(_)) | Err(AgentError::Waiting(_) | AgentError::Stopped { .. }) => count += 1,
                Err(error) => tracing::warn!(%conversation, %error, "the agent could not answer to a result"),
            }
        }
        Ok(count)
    }

    /// Goes on with runs that nobody drives. Says how many.
    async fn resume(&self, stop: &CancellationToken) -> Result<usize, Failure> {
        let mut count = 0;
        for run in self.record.store().runs(Some(RunState::Ready), ROUND).await? {
            if stop.is_cancelled() {
                break;
            }
            let agent = described_agent(&run, self.workspace);
            let mut session = self.session(agent.as_deref()).await?;
            match session.agent.resume_run(run.id).await {
                Ok(_) | Err(AgentError::Waiting(_) | AgentError::Stopped { .. }) => count += 1,
                Err(AgentError::Storage(error)) => tracing::warn!(run = %run.id, %error, "the run stays where it is"),
                Err(error) => {
                    count += 1;
                    tracing::warn!(run = %run.id, %error, "the run ended without an answer");
                }
            }
        }
        Ok(count)
    }
}
