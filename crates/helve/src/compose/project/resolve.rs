//! Resolves names in tool sets, rules and agents, and reports unknown names with their position in the file.

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::authored::FieldError;
use helve_core::{Pattern, suggest};
use helve_project::{AgentFile, Diagnostic, ProjectFile, SetFile, Severity};
use helve_tools::{Catalogue, Selection, Snapshot, ToolSet, View};

use super::load::LoadedProject;

/// An agent that a project file describes.
#[derive(Debug, Clone)]
pub struct ProjectAgent {
    /// The contents of the agent's file.
    pub file: AgentFile,
    /// The path of the agent's file, relative to the project folder.
    pub location: Arc<str>,
    /// The tools that the agent may use.
    pub selection: Selection,
}

/// Returns the tool sets of a project, with nested sets expanded. Reports cycles and unknown sets.
pub(super) fn sets(loaded: &LoadedProject, diagnostics: &mut Vec<Diagnostic>) -> Vec<ToolSet> {
    let by_name: HashMap<&str, &(SetFile, ProjectFile)> = loaded.sets.iter().map(|set| (set.0.name.as_str(), set)).collect();
    let mut flat = Vec::new();
    for (set, file) in &loaded.sets {
        let mut tools: Vec<Pattern> = Vec::new();
        match expand(&by_name, set, &mut vec![&set.name], &mut tools) {
            Ok(()) => flat.push(ToolSet::new(set.name.as_str(), tools).description(set.description.clone())),
            Err(error) => diagnostics.push(file.diagnose(Severity::Error, &error)),
        }
    }
    flat
}

fn expand<'a>(
    sets: &HashMap<&str, &'a (SetFile, ProjectFile)>,
    set: &'a SetFile,
    inside: &mut Vec<&'a str>,
    tools: &mut Vec<Pattern>,
) -> Result<(), FieldError> {
    tools.extend(set.tools.iter().filter(|tool| !tools.contains(tool)).cloned().collect::<Vec<_>>());
    for (index, name) in set.tool_sets.iter().enumerate() {
        // Points into this set's file; an error deeper down is also reported for the set that contains it.
        let at = format!("/tool_sets/{index}");
        if inside.contains(&name.as_str()) {
            let cycle = inside.iter().copied().chain([name.as_str()]).collect::<Vec<_>>().join("` → `");
            return Err(FieldError::new(at, format!("the sets form a cycle: `{cycle}`")));
        }
        let Some((inner, _)) = sets.get(name.as_str()) else {
            return Err(unknown("tool set", name, at, sets.keys().copied()));
        };
        inside.push(&inner.name);
        expand(sets, inner, inside, tools).map_err(|error| FieldError { path: at, ..error })?;
        inside.pop();
    }
    Ok(())
}

/// Returns an error about an unknown name, with the nearest known name as a hint.
pub(in crate::compose) fn unknown<'a>(
    what: &str,
    name: &str,
    at: impl Into<String>,
    known: impl IntoIterator<Item = &'a str>,
) -> FieldError {
    suggested(FieldError::new(at, format!("there is no {what} `{name}`")), name, known)
}

/// Adds the nearest known name as a hint, if there is one.
fn suggested<'a>(error: FieldError, name: &str, known: impl IntoIterator<Item = &'a str>) -> FieldError {
    match suggest::nearest(name, known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// Reports unknown tools in sets.
pub(super) fn check_sets(loaded: &LoadedProject, catalogue: &Catalogue, diagnostics: &mut Vec<Diagnostic>) {
    let snapshot = catalogue.snapshot(&View::default());
    for (set, file) in &loaded.sets {
        diagnostics.extend(unknown_tools(&set.tools, file, catalogue, &snapshot));
    }
}

/// Reports rules about unknown tools: a typo in a `deny` rule would go unnoticed.
pub(super) fn check_rules(loaded: &LoadedProject, catalogue: &Catalogue, diagnostics: &mut Vec<Diagnostic>) {
    let snapshot = catalogue.snapshot(&View::default());
    let is_unknown = |name: &Pattern| name.is_literal() && snapshot.get(name.as_str()).is_none() && !catalogue.may_appear(name.as_str());
    let warn = |file: &ProjectFile, at: String, name: &str| {
        let error = FieldError::new(at, format!("the rule names an unknown tool `{name}`"));
        file.diagnose(Severity::Warning, &suggested(error, name, snapshot.iter().map(|entry| &**entry.name())))
    };
    if let Some(file) = &loaded.config_file {
        for (index, rule) in loaded.config.permissions.iter().enumerate() {
            if let Some(name) = rule.tool.as_ref().filter(|name| is_unknown(name)) {
                diagnostics.push(warn(file, format!("/permissions/{index}/tool"), name.as_str()));
            }
        }
    }
    for (agent, file) in &loaded.agents {
        for name in agent.permissions.keys().filter(|name| is_unknown(&Pattern::new(name.as_str()))) {
            diagnostics.push(warn(file, format!("/permissions/{}", name.replace('~', "~0").replace('/', "~1")), name));
        }
    }
}

/// Returns the valid agents of a project. Reports and omits an agent with an unknown tool set, tool or sub-agent.
pub(super) fn agents(loaded: &LoadedProject, catalogue: &Catalogue, diagnostics: &mut Vec<Diagnostic>) -> Vec<ProjectAgent> {
    let snapshot = catalogue.snapshot(&View::default());
    let sets = catalogue.sets();
    let names: Vec<&str> = loaded.agents.iter().map(|(agent, _)| agent.name.as_str()).collect();
    let mut agents = Vec::new();
    for (agent, file) in &loaded.agents {
        let set = agent.tool_sets.iter().position(|name| !sets.iter().any(|set| *set.name == **name));
        let set =
            set.map(|index| unknown("tool set", &agent.tool_sets[index], format!("/tool_sets/{index}"), sets.iter().map(|set| &*set.name)));
        let helper = agent.subagents.iter().position(|name| !names.contains(&name.as_str()));
        let helper = helper.map(|index| unknown("agent", &agent.subagents[index], format!("/subagents/{index}"), names.iter().copied()));
        let diagnostic = match set.or(helper) {
            Some(error) => Some(file.diagnose(Severity::Error, &error)),
            None => unknown_tools(&agent.tools, file, catalogue, &snapshot).into_iter().next(),
        };
        if diagnostic.as_ref().is_none_or(|diagnostic| diagnostic.severity != Severity::Error) {
            agents.push(project_agent(agent, file));
        }
        diagnostics.extend(diagnostic);
    }
    if let (Some(name), Some(file)) = (&loaded.config.agent, &loaded.config_file)
        && !names.contains(&name.as_str())
    {
        diagnostics.push(file.diagnose(Severity::Error, &unknown("agent", name, "/agent", names.iter().copied())));
    }
    agents
}

fn unknown_tools(tools: &[Pattern], file: &ProjectFile, catalogue: &Catalogue, snapshot: &Snapshot) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (index, tool) in tools.iter().enumerate().filter(|(_, tool)| tool.is_literal()) {
        let name = tool.as_str();
        if snapshot.get(name).is_some() {
            continue;
        }
        let at = format!("/tools/{index}");
        if catalogue.may_appear(name) {
            let error = FieldError::new(
                at,
                format!("the tool `{name}` is not available: its server is not connected, or the tool is not approved"),
            );
            diagnostics.push(file.diagnose(Severity::Warning, &error.hint("`helve mcp list` shows the servers")));
            continue;
        }
        let error = FieldError::new(at, format!("there is no tool `{name}`")).hint("`helve tools` lists all tools");
        diagnostics.push(file.diagnose(Severity::Error, &suggested(error, name, snapshot.iter().map(|entry| &**entry.name()))));
    }
    diagnostics
}

fn project_agent(agent: &AgentFile, file: &ProjectFile) -> ProjectAgent {
    let selection = Selection::default()
        .agent(agent.name.as_str())
        .sets(agent.tool_sets.iter().map(String::as_str))
        .tools(agent.tools.clone())
        .restrictions(agent.permissions.iter().map(|(tool, permission)| (Pattern::new(tool.as_str()), *permission)).collect());
    ProjectAgent { file: agent.clone(), location: file.path().clone(), selection }
}
