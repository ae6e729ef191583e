//! A project's worker: runs background calls, resumes runs that no process drives, and wakes agents when results arrive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helve_agent::{Agent, AgentError};
use helve_core::store::{RunState, TaskFilter};
use helve_core::{CancellationToken, ConversationId, StoreError};
use helve_project::OnResult;
use helve_tools::StoreHandle;

use super::{AgentChoice, Helve, OpenAgentError};

/// Interval between checks for runs to resume, for stores that do not announce changes.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of runs per round.
const ROUND: usize = 100;
/// Maximum number of unread results per round.
const RESULTS: usize = 1000;

/// A worker that runs background calls, resumes runs that no process drives, and runs agents again when results of background calls arrive.
#[derive(Debug, Clone)]
pub struct ProjectWorker {
    helve: Helve,
    store: StoreHandle,
    choice: AgentChoice,
    concurrency: usize,
}

/// The amount of work that [`ProjectWorker::run_until_empty`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkSummary {
    /// Number of background calls that ran.
    pub tasks: usize,
    /// Number of runs that were resumed, and of agents that ran on new results.
    pub runs: usize,
}

/// # Workers
impl Helve {
    /// Creates a worker that runs up to `concurrency` background calls at once, and resumes runs. `choice` sets the store and the model of
    /// the agents that it runs.
    ///
    /// # Errors
    /// Returns an error if the store cannot be opened.
    pub async fn worker(&self, concurrency: usize, choice: AgentChoice) -> Result<ProjectWorker, super::OpenStoreError> {
        let store = self.open_store(choice.store.as_deref()).await?;
        Ok(ProjectWorker { helve: self.clone(), store, choice, concurrency })
    }
}

impl ProjectWorker {
    /// Works until `stop` is cancelled. Unfinished idempotent tasks then return to the queue.
    pub async fn run(&self, stop: CancellationToken) {
        let mut changes = self.store.changes();
        let agents = async {
            loop {
                if let Err(error) = self.drive_agents(&stop).await {
                    tracing::warn!(%error, "cannot resume runs or wake agents; trying again");
                }
                tokio::select! {
                    Ok(()) = changes.changed() => {}
                    () = tokio::time::sleep(INTERVAL) => {}
                }
            }
        };
        tokio::select! {
            () = self.helve.task_worker(&self.store, self.concurrency).run(stop.clone()) => {}
            () = agents => {}
            () = self.helve.follow() => {}
        }
        self.close().await;
    }

    /// Works until no task and no run is left, or `stop` is cancelled. Returns the amount of work done.
    ///
    /// # Errors
    /// Returns an error if the store fails, or an agent cannot be opened.
    pub async fn run_until_empty(&self, stop: CancellationToken) -> Result<WorkSummary, OpenAgentError> {
        let summary = self.work_until_empty(&stop).await;
        self.close().await;
        summary
    }

    async fn work_until_empty(&self, stop: &CancellationToken) -> Result<WorkSummary, OpenAgentError> {
        let mut all = WorkSummary::default();
        loop {
            let tasks = self.helve.task_worker(&self.store, self.concurrency).run_until_empty(stop.clone()).await;
            let tasks = tasks.map_err(AgentError::from)?;
            let runs = self.drive_agents(stop).await?;
            all = WorkSummary { tasks: all.tasks + tasks, runs: all.runs + runs };
            if tasks + runs == 0 || stop.is_cancelled() {
                return Ok(all);
            }
        }
    }

    /// Releases the leases of this process.
    async fn close(&self) {
        self.helve.flush_webhook().await;
        if let Err(error) = self.store.close().await {
            tracing::warn!(%error, "cannot release the leases of this worker; others wait until they expire");
        }
    }

    async fn drive_agents(&self, stop: &CancellationToken) -> Result<usize, OpenAgentError> {
        Ok(self.resume(stop).await? + self.wake(stop).await?)
    }

    async fn agent(&self, name: Option<&str>) -> Result<Agent, OpenAgentError> {
        Ok(self.helve.open_agent(name, &self.choice).await?.agent)
    }

    /// Resumes runs that no process drives. Returns the number of runs resumed.
    async fn resume(&self, stop: &CancellationToken) -> Result<usize, OpenAgentError> {
        let mut count = 0;
        for run in self.store.runs(Some(RunState::Ready), ROUND).await.map_err(AgentError::from)? {
            if stop.is_cancelled() {
                break;
            }
            let mut agent = self.agent(self.helve.known_agent(run.agent.as_deref())).await?;
            match agent.resume_run(run.id).await {
                Ok(_) | Err(AgentError::Waiting(_) | AgentError::Stopped { .. }) => count += 1,
                Err(AgentError::Storage(error)) => tracing::warn!(run = %run.id, %error, "cannot resume the run; its state is unchanged"),
                Err(error) => {
                    count += 1;
                    tracing::warn!(run = %run.id, %error, "the run ended without an answer");
                }
            }
        }
        Ok(count)
    }

    /// Runs agents whose files say `on_result: run` and that have unread results. Returns the number of agents that ran.
    async fn wake(&self, stop: &CancellationToken) -> Result<usize, OpenAgentError> {
        let mut count = 0;
        for (conversation, name) in self.unread_results().await.map_err(AgentError::from)? {
            if stop.is_cancelled() {
                break;
            }
            let mut agent = self.agent(Some(&name)).await?;
            agent.open_conversation(conversation).await?;
            match agent.run_on_results().await {
                Ok(None) => {}
                Ok(Some(_)) | Err(AgentError::Waiting(_) | AgentError::Stopped { .. }) => count += 1,
                Err(error) => tracing::warn!(%conversation, %error, "cannot wake the agent for a result"),
            }
        }
        Ok(count)
    }

    /// Returns the conversations with unread results whose agents have `on_result: run`, with the names of the agents.
    async fn unread_results(&self) -> Result<BTreeMap<ConversationId, Arc<str>>, StoreError> {
        let known = self.helve.project().unwrap_or_default();
        let wakes = |name: &str| known.agents.iter().any(|agent| agent.file.name == name && agent.file.on_result == OnResult::Run);
        if known.agents.iter().all(|agent| agent.file.on_result != OnResult::Run) {
            return Ok(BTreeMap::new());
        }
        let unread = self.store.tasks(TaskFilter::default().unread(true).limit(RESULTS)).await?.into_iter();
        Ok(unread.filter_map(|task| Some((task.caller.conversation?, task.caller.agent.filter(|agent| wakes(agent))?))).collect())
    }
}
