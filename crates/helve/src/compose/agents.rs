//! Chooses an agent of a project, and creates it from its file.

#[cfg(all(feature = "models", feature = "store"))]
mod open;

use helve_agent::{Agent, AgentOptions, RunLimits};
use helve_core::{DynModel, suggest};
use helve_tools::Selection;

#[cfg(all(feature = "models", feature = "store"))]
pub use self::open::{AgentChoice, OpenAgent, OpenAgentError};
use super::{Diagnostic, Helve, ProjectAgent, Severity, Trust};

/// The system prompt of an agent without a file.
const INSTRUCTIONS: &str = "You are a helpful assistant. Use the tools where they help, and answer briefly.";
/// The name of an agent without a file.
const DEFAULT_NAME: &str = "helve";

/// The error if no agent of a project can be chosen.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ChooseAgentError {
    /// The settings, or the agent's file, are invalid.
    #[error("{file} has an error")]
    Broken {
        /// The invalid file, relative to the project folder.
        file: String,
    },
    /// There is no agent of this name.
    #[error("there is no agent `{name}`{near}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// A suggestion to append to the message, or an empty string.
        near: String,
    },
    /// The project has several agents and no default.
    #[error("the project has several agents ({}): name one with --agent, or set `agent:` in helve.yaml", names.join(", "))]
    Several {
        /// The names of the agents.
        names: Vec<String>,
    },
}

/// # Agents of a project
impl Helve {
    /// Chooses the agent `name`, else the project's default agent, else its only agent. Returns `None` if the project has no agents.
    ///
    /// # Errors
    /// Returns an error if there is no agent of this name, no default among several, or only an invalid one.
    pub fn choose_agent(&self, name: Option<&str>) -> Result<Option<ProjectAgent>, ChooseAgentError> {
        let report = self.project().unwrap_or_default();
        if report.settings_are_broken {
            // The configured agent, model and rules are unknown. Another model must not see the conversation.
            return Err(ChooseAgentError::Broken { file: "helve.yaml".to_owned() });
        }
        let names = || report.agents.iter().map(|agent| agent.file.name.as_str());
        match (name.or(report.default_agent.as_deref()), &report.agents[..]) {
            (Some(name), agents) => {
                let found = agents.iter().find(|agent| agent.file.name == name).cloned();
                let unknown = || ChooseAgentError::Unknown { name: name.to_owned(), near: suggest::did_you_mean(name, names()) };
                found.map(Some).ok_or_else(unknown)
            }
            (None, []) => match report.diagnostics.iter().find(|diagnostic| is_broken_agent(diagnostic)) {
                // An agent with all tools could do more than the invalid one was meant to.
                Some(broken) => Err(ChooseAgentError::Broken { file: broken.file.as_deref().unwrap_or_default().to_owned() }),
                None => Ok(None),
            },
            (None, [only]) => Ok(Some(only.clone())),
            (None, _) => Err(ChooseAgentError::Several { names: names().map(ToOwned::to_owned).collect() }),
        }
    }

    /// Returns `name` if a file of the project describes an agent of this name, else `None`.
    #[must_use]
    pub fn known_agent<'a>(&self, name: Option<&'a str>) -> Option<&'a str> {
        let report = self.project().unwrap_or_default();
        name.filter(|name| report.agents.iter().any(|agent| agent.file.name == *name))
    }

    /// Creates an agent of the project; for `None`, an agent with all tools.
    #[must_use]
    pub fn project_agent(&self, agent: Option<&ProjectAgent>, model: impl DynModel) -> Agent {
        let (catalogue, executor) = (self.catalogue.clone(), self.executor.clone());
        let mut options = AgentOptions::default().name(DEFAULT_NAME);
        let mut selection = None;
        let report = self.project().unwrap_or_default();
        let trusted = report.trust.is_some_and(Trust::allows);
        // In an untrusted folder, limits only tighten.
        let limit = |own: Option<u32>, usual: u32| own.map_or(usual, |own| if trusted { own } else { own.min(usual) });
        match agent {
            None => options.system_prompt = Some(INSTRUCTIONS.to_owned()),
            Some(agent) => {
                let file = &agent.file;
                options.name = Some(file.name.as_str().into());
                options.system_prompt = Some(file.instructions.clone()).filter(|text| !text.trim().is_empty());
                options.output_strategy = file.output_strategy;
                let (limits, defaults) = (&file.limits, RunLimits::default());
                options.max_iterations = limit(limits.max_iterations, options.max_iterations);
                let (calls, same) = (defaults.max_calls, defaults.same_calls);
                options.limits = defaults
                    .max_calls(limit(limits.max_calls, calls))
                    .same_calls(limit(limits.same_calls, same))
                    .max_tokens(limits.max_tokens)
                    .max_cost(limits.max_cost)
                    .timeout(limits.timeout.map(|timeout| timeout.0));
                selection = Some(agent.selection.clone());
            }
        }
        let bytes = report.result_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let usual = options.limits.result_bytes;
        options.limits.result_bytes = bytes.map_or(usual, |bytes| if trusted { bytes } else { bytes.min(usual) });
        // An agent without a file has all tools, and rules for agents also apply to it.
        let selection = selection.unwrap_or_else(|| {
            let mut all = Selection::default().tools(["*"]);
            all.agent.clone_from(&options.name);
            all
        });
        Agent::with_tools(model, catalogue, executor, Some(selection)).with_options(options)
    }
}

fn is_broken_agent(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Error && diagnostic.file.as_deref().is_some_and(|file| file.starts_with("agents/"))
}
