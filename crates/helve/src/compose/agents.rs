//! Agents of a project: what their files say becomes an agent with its model and tools.

use helve_agent::{Agent, AgentOptions, RunLimits};
use helve_core::{DynModel, suggest};
use helve_tools::Selection;

use super::{Diagnostic, Helve, ProjectAgent, Severity, Trust};

/// What an agent is told that no file describes.
const INSTRUCTIONS: &str = "You are a helpful assistant. Use the tools where they help, and answer briefly.";
/// The name of the agent that no file describes.
const DEFAULT_NAME: &str = "helve";

/// Why no agent of a project can be chosen.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NoAgent {
    /// The settings, or the agent's own file, cannot be used.
    #[error("{file} cannot be used")]
    Broken {
        /// The file.
        file: String,
    },
    /// There is no agent of this name.
    #[error("there is no agent `{name}`{near}")]
    Unknown {
        /// The name.
        name: String,
        /// What was probably meant.
        near: String,
    },
    /// There are several, and none of them is the project's own choice.
    #[error("there are several agents ({}), and none of them is the project's own choice", names.join(", "))]
    Several {
        /// Their names.
        names: Vec<String>,
    },
}

impl Helve {
    /// The agent of this name, the project's own choice, or its only one. Nothing where the project has none.
    ///
    /// # Errors
    /// Where there is no agent of this name, several to choose from, or only one that cannot be used.
    pub fn choose_agent(&self, name: Option<&str>) -> Result<Option<ProjectAgent>, NoAgent> {
        let report = self.project().unwrap_or_default();
        if report.settings_are_broken {
            // Nobody knows which agent, model and rules they name; another model could be a stranger to this conversation.
            return Err(NoAgent::Broken { file: "helve.yaml".to_owned() });
        }
        let names = || report.agents.iter().map(|agent| agent.file.name.as_str());
        match (name.or(report.default_agent.as_deref()), &report.agents[..]) {
            (Some(name), agents) => {
                let found = agents.iter().find(|agent| agent.file.name == name).cloned();
                let unknown = || NoAgent::Unknown { name: name.to_owned(), near: suggest::did_you_mean(name, names()) };
                found.map(Some).ok_or_else(unknown)
            }
            (None, []) => match report.diagnostics.iter().find(|diagnostic| is_broken_agent(diagnostic)) {
                // One with all tools in its place could do more than the person meant it to.
                Some(broken) => Err(NoAgent::Broken { file: broken.file.as_deref().unwrap_or_default().to_owned() }),
                None => Ok(None),
            },
            (None, [only]) => Ok(Some(only.clone())),
            (None, _) => Err(NoAgent::Several { names: names().map(ToOwned::to_owned).collect() }),
        }
    }

    /// The agent's name, if a file describes it.
    #[must_use]
    pub fn described(&self, agent: Option<&str>) -> Option<String> {
        let known = self.project().unwrap_or_default();
        agent.filter(|name| known.agents.iter().any(|agent| agent.file.name == *name)).map(ToOwned::to_owned)
    }

    /// An agent of the project, or one with all tools where no file describes any.
    #[must_use]
    pub fn project_agent(&self, agent: Option<&ProjectAgent>, model: impl DynModel) -> Agent {
        let (catalogue, executor) = (self.catalogue.clone(), self.executor.clone());
        let mut options = AgentOptions::default().name(DEFAULT_NAME);
        let mut selection = None;
        let report = self.project().unwrap_or_default();
        let trusted = report.trust.is_some_and(Trust::allows);
        // Until the folder is trusted, its limits only tighten.
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
        // An agent without a file has all tools, but its calls are still those of an agent.
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
