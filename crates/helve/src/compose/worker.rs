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

/// Interval between checks for runs, where the store does not announce them.
const LOOK: Duration = Duration::from_secs(1);
/// So many runs are looked at in a round.
const ROUND: usize = 100;
/// So many results that no agent was told of.
const RESULTS: usize = 1000;

/// Runs background calls, goes on with runs whose requests were answered or whose process ended, and lets agents answer to results.
#[derive(Debug, Clone)]
pub struct ProjectWorker {
    helve: Helve,
    store: StoreHandle,
    choice: AgentChoice,
    concurrency: usize,
}

/// What a worker has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Worked {
    /// Background calls that ran.
    pub tasks: usize,
    /// Runs that went on, and results that agents answered to.
    pub runs: usize,
}

impl Helve {
    /// A worker of the project that runs so many background calls at once, with agents as they are chosen here.
    ///
    /// # Errors
    /// Where there is no store.
    pub async fn worker(&self, concurrency: usize, choice: AgentChoice) -> Result<ProjectWorker, super::NoStore> {
        let store = self.open_store(choice.store.as_deref()).await?;
        Ok(ProjectWorker { helve: self.clone(), store, choice, concurrency })
    }
}

impl ProjectWorker {
    /// Works until it is stopped. What runs then goes back to the queue where it may run twice.
    pub async fn run(&self, stop: CancellationToken) {
        let mut changes = self.store.changes();
        let agents = async {
            loop {
                if let Err(error) = self.drive_agents(&stop).await {
                    tracing::warn!(%error, "runs and results of agents wait");
                }
                tokio::select! {
                    Ok(()) = changes.changed() => {}
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        };
        tokio::select! {
            () = self.helve.task_worker(&self.store, self.concurrency).run(stop.clone()) => {}
            () = agents => {}
            () = self.helve.follow() => {}
        }
        self.end().await;
    }

    /// Works until nothing is left that it could do, and says how much that was.
    ///
    /// # Errors
    /// Where the store cannot be used, or an agent cannot be opened.
    pub async fn run_until_empty(&self, stop: CancellationToken) -> Result<Worked, OpenAgentError> {
        let worked = self.work_until_empty(&stop).await;
        self.end().await;
        worked
    }

    async fn work_until_empty(&self, stop: &CancellationToken) -> Result<Worked, OpenAgentError> {
        let mut all = Worked::default();
        loop {
            let tasks = self.helve.task_worker(&self.store, self.concurrency).run_until_empty(stop.clone()).await;
            let tasks = tasks.map_err(AgentError::from)?;
            let runs = self.drive_agents(stop).await?;
            all = Worked { tasks: all.tasks + tasks, runs: all.runs + runs };
            if tasks + runs == 0 || stop.is_cancelled() {
                return Ok(all);
            }
        }
    }

    /// Lets everything go that this process holds.
    async fn end(&self) {
        self.helve.told().await;
        if let Err(error) = self.store.close().await {
            tracing::warn!(%error, "the store was not told that this worker ends; others wait for its lease");
        }
    }

    async fn drive_agents(&self, stop: &CancellationToken) -> Result<usize, OpenAgentError> {
        Ok(self.resume(stop).await? + self.wake(stop).await?)
    }

    /// An agent at work without a person.
    async fn agent(&self, name: Option<&str>) -> Result<Agent, OpenAgentError> {
        Ok(self.helve.open_agent(name, &self.choice).await?.agent)
    }

    /// Resumes runs that no process drives. Returns how many.
    async fn resume(&self, stop: &CancellationToken) -> Result<usize, OpenAgentError> {
        let mut count = 0;
        for run in self.store.runs(Some(RunState::Ready), ROUND).await.map_err(AgentError::from)? {
            if stop.is_cancelled() {
                break;
            }
            let mut agent = self.agent(self.helve.described(run.agent.as_deref()).as_deref()).await?;
            match agent.resume_run(run.id).await {
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

    /// Wakes agents whose files say `on_result: run` and that have unread results. Returns how many ran.
    async fn wake(&self, stop: &CancellationToken) -> Result<usize, OpenAgentError> {
        let mut count = 0;
        for (conversation, name) in self.unheard().await.map_err(AgentError::from)? {
            if stop.is_cancelled() {
                break;
            }
            let mut agent = self.agent(Some(&name)).await?;
            agent.open_conversation(conversation).await?;
            match agent.run_on_results().await {
                Ok(None) => {}
                Ok(Some(_)) | Err(AgentError::Waiting(_) | AgentError::Stopped { .. }) => count += 1,
                Err(error) => tracing::warn!(%conversation, %error, "the agent could not answer to a result"),
            }
        }
        Ok(count)
    }

    /// Conversations with results that their agents want to answer to.
    async fn unheard(&self) -> Result<BTreeMap<ConversationId, Arc<str>>, StoreError> {
        let known = self.helve.project().unwrap_or_default();
        let wakes = |name: &str| known.agents.iter().any(|agent| agent.file.name == name && agent.file.on_result == OnResult::Run);
        if known.agents.iter().all(|agent| agent.file.on_result != OnResult::Run) {
            return Ok(BTreeMap::new());
        }
        let unheard = self.store.tasks(TaskFilter::default().unheard(true).limit(RESULTS)).await?.into_iter();
        Ok(unheard.filter_map(|task| Some((task.caller.conversation?, task.caller.agent.filter(|agent| wakes(agent))?))).collect())
    }
}
