//! Opens an agent of a project, with its model and the store for its runs.

use helve_agent::{Agent, AgentError};

use super::ChooseAgentError;
use crate::compose::{ChooseModelError, Helve, ModelChoice, OpenStoreError, ProjectAgent};

/// Overrides of the project's model and store.
#[derive(Debug, Clone, Default, helve_core::Setters)]
pub struct AgentChoice {
    /// The choice of the model.
    pub model: ModelChoice,
    /// The URL of the store, such as `sqlite:helve.db`; `None` for the project's store.
    pub store: Option<String>,
}

/// An agent of a project, ready to run.
#[derive(Debug)]
pub struct OpenAgent {
    /// The agent. Helve stores its runs, and the call strategy that works for its model.
    pub agent: Agent,
    /// The agent's file; `None` if no file describes the agent.
    pub file: Option<ProjectAgent>,
    /// Why Helve chose this model; `None` if the user or the project named it.
    pub because: Option<String>,
}

/// The error if an agent cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenAgentError {
    /// There is no such agent, or its file is invalid.
    #[error(transparent)]
    Choice(#[from] ChooseAgentError),
    /// The run cannot be resumed.
    #[error(transparent)]
    Run(#[from] AgentError),
    /// No model can be used.
    #[error(transparent)]
    Model(#[from] ChooseModelError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenStoreError),
}

impl Helve {
    /// Opens the agent that [`Helve::choose_agent`] chooses, or an agent with all tools if the project has none.
    ///
    /// # Errors
    /// Returns an error if there is no such agent, no model, or no store.
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
        let agent = agent.on_strategy(move |strategy| helve.remember_strategy(&chosen, strategy));
        Ok(OpenAgent { agent, file, because })
    }
}
