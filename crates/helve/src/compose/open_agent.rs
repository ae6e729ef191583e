//! Opening an agent of a project: its file, its model, the store for its runs, and how its model was found to make calls.

use helve_agent::{Agent, AgentError};

use super::{Helve, ModelChoice, NoAgent, NoModel, NoStore, ProjectAgent};

/// What a person or a program chooses instead of what the project says.
#[derive(Debug, Clone, Default, helve_core::Setters)]
pub struct AgentChoice {
    /// The model.
    pub model: ModelChoice,
    /// The address of the store, such as `sqlite:helve.db`.
    pub store: Option<String>,
}

/// An agent of a project, ready to run.
#[derive(Debug)]
pub struct OpenAgent {
    /// The agent. Its runs are stored, and what it finds out about its model is remembered.
    pub agent: Agent,
    /// What its file says; `None` if no file describes it.
    pub file: Option<ProjectAgent>,
    /// Why this model was chosen; `None` if it was named.
    pub because: Option<String>,
}

/// Why an agent cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenAgentError {
    /// There is no such agent, or it cannot be used.
    #[error(transparent)]
    Choice(#[from] NoAgent),
    /// It cannot go on with a run.
    #[error(transparent)]
    Run(#[from] AgentError),
    /// There is no model for it.
    #[error(transparent)]
    Model(#[from] NoModel),
    /// There is no store for its runs.
    #[error(transparent)]
    Store(#[from] NoStore),
}

impl Helve {
    /// Opens an agent: the one of this name, the project's own choice, its only one, or one with all tools where no file describes any.
    ///
    /// # Errors
    /// Where there is no such agent, no model for it, or no store for its runs.
    pub async fn open_agent(&self, name: Option<&str>, choice: &AgentChoice) -> Result<OpenAgent, OpenAgentError> {
        let file = self.choose_agent(name)?;
        let chosen = self.model(&choice.model, file.as_ref()).await?;
        let store = self.open_store(choice.store.as_deref()).await?;
        let agent = self.project_agent(file.as_ref(), chosen.model.clone()).with_store(store)?;
        let agent = match chosen.strategy {
            Some(strategy) => agent.with_strategy(strategy),
            None => agent,
        };
        let (helve, because) = (self.clone(), chosen.because.clone());
        let agent = agent.on_strategy(move |strategy| helve.learn(&chosen, Some(strategy)));
        Ok(OpenAgent { agent, file, because })
    }
}
