//! Names in sets and agents are looked up, and names that mean nothing become diagnostics with their place.

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::authored::FieldError;
use helve_core::{Pattern, suggest};
use helve_project::{AgentFile, Diagnostic, ProjectFile, SetFile, Severity};
use helve_tools::{Catalogue, Selection, Snapshot, ToolSet, View};

use super::load::Loaded;

/// An agent of a project: what its file says, and the tools it selects.
#[derive(Debug, Clone)]
pub struct ProjectAgent {
    /// What its file says.
    pub file: AgentFile,
    /// Where it stands.
    pub location: Arc<str>,
    /// The tools it selects.
    pub selection: Selection,
}

/// The tool sets of a project, sets inside sets written out. A set in a circle, or with an unknown part, is reported.
pub(super) fn sets(loaded: &Loaded, diagnostics: &mut Vec<Diagnostic>) -> Vec<ToolSet> {
    let by_name: HashMap<&str, &(SetFile, ProjectFile)> = loaded.sets.iter().map(|set| (set.0.name.as_str(), set)).collect();
    let mut flat = Vec::new();
    for (set, file) in &loaded.sets {
        let mut tools: Vec<Pattern> = Vec::new();
        match write_out(&by_name, set, &mut vec![&set.name], &mut tools) {
            Ok(()) => flat.push(ToolSet::new(set.name.as_str(), tools).description(set.description.clone())),
            Err(error) => diagnostics.push(file.diagnose(Severity::Error, &error)),
        }
    }
    flat
}

fn write_out<'a>(
    sets: &HashMap<&str, &'a (SetFile, ProjectFile)>,
    set: &'a SetFile,
    inside: &mut Vec<&'a str>,
    tools: &mut Vec<Pattern>,
) -> Result<(), FieldError> {
    tools.extend(set.tools.iter().filter(|tool| !tools.contains(tool)).cloned().collect::<Vec<_>>());
    for (index, name) in set.tool_sets.iter().enumerate() {
        // Only the place in the set itself can be shown; deeper mistakes are reported for the set they are in.
        let at = format!("/tool_sets/{index}");
        if inside.contains(&name.as_str()) {
            let circle = inside.iter().copied().chain([name.as_str()]).collect::<Vec<_>>().join("` → `");
            return Err(FieldError::new(at, format!("the sets go round in a circle: `{circle}`")));
        }
        let Some((inner, _)) = sets.get(name.as_str()) else {
            return Err(unknown_set(name, at, sets.keys().copied()));
        };
        inside.push(&inner.name);
        write_out(sets, inner, inside, tools).map_err(|error| FieldError { path: at, ..error })?;
        inside.pop();
    }
    Ok(())
}

fn unknown_set<'a>(name: &str, at: String, known: impl Iterator<Item = &'a str>) -> FieldError {
    let error = FieldError::new(at, format!("there is no tool set `{name}`"));
    match suggest::nearest(name, known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// Reports names of tools in sets that no source can bring.
pub(super) fn check_sets(loaded: &Loaded, catalogue: &Catalogue, diagnostics: &mut Vec<Diagnostic>) {
    let snapshot = catalogue.snapshot(&View::default());
    for (set, file) in &loaded.sets {
        diagnostics.extend(unknown_tool(&set.tools, file, catalogue, &snapshot));
    }
}

/// Reports rules about tools that are not there: a typo in a rule that forbids would go unnoticed.
pub(super) fn check_rules(loaded: &Loaded, catalogue: &Catalogue, diagnostics: &mut Vec<Diagnostic>) {
    let snapshot = catalogue.snapshot(&View::default());
    let unknown = |name: &Pattern| name.is_literal() && snapshot.get(name.as_str()).is_none() && !catalogue.may_appear(name.as_str());
    let warn = |file: &ProjectFile, at: String, name: &str| {
        let error = FieldError::new(at, format!("the rule is about a tool `{name}` that is not there"));
        let near = suggest::nearest(name, snapshot.iter().map(|entry| &**entry.name()));
        file.diagnose(Severity::Warning, &near.map_or_else(|| error.clone(), |near| error.clone().hint(format!("did you mean `{near}`?"))))
    };
    if let Some(file) = &loaded.config_file {
        for (index, rule) in loaded.config.permissions.iter().enumerate() {
            if let Some(name) = rule.tool.as_ref().filter(|name| unknown(name)) {
                diagnostics.push(warn(file, format!("/permissions/{index}/tool"), name.as_str()));
            }
        }
    }
    for (agent, file) in &loaded.agents {
        for name in agent.permissions.keys().filter(|name| unknown(&Pattern::new(name.as_str()))) {
            diagnostics.push(warn(file, format!("/permissions/{}", name.replace('~', "~0").replace('/', "~1")), name));
        }
    }
}

/// The agents of a project. One with a name that means nothing is reported, and not there.
pub(super) fn agents(loaded: &Loaded, catalogue: &Catalogue, diagnostics: &mut Vec<Diagnostic>) -> Vec<ProjectAgent> {
    let snapshot = catalogue.snapshot(&View::default());
    let sets = catalogue.sets();
    let names: Vec<&str> = loaded.agents.iter().map(|(agent, _)| agent.name.as_str()).collect();
    let mut agents = Vec::new();
    for (agent, file) in &loaded.agents {
        let set = agent.tool_sets.iter().position(|name| !sets.iter().any(|set| *set.name == **name));
        let set = set.map(|index| unknown_set(&agent.tool_sets[index], format!("/tool_sets/{index}"), sets.iter().map(|set| &*set.name)));
        let helper = agent.subagents.iter().position(|name| !names.contains(&name.as_str()));
        let helper = helper.map(|index| unknown_agent(&agent.subagents[index], format!("/subagents/{index}"), &names));
        if let Some(error) = set.or(helper) {
            diagnostics.push(file.diagnose(Severity::Error, &error));
        } else if let Some(diagnostic) = unknown_tool(&agent.tools, file, catalogue, &snapshot).into_iter().next() {
            let error = diagnostic.severity == Severity::Error;
            diagnostics.push(diagnostic);
            if !error {
                agents.push(project_agent(agent, file));
            }
        } else {
            agents.push(project_agent(agent, file));
        }
    }
    if let (Some(name), Some(file)) = (&loaded.config.agent, &loaded.config_file)
        && !names.contains(&name.as_str())
    {
        diagnostics.push(file.diagnose(Severity::Error, &unknown_agent(name, "/agent".into(), &names)));
    }
    agents
}

fn unknown_agent(name: &str, at: String, known: &[&str]) -> FieldError {
    let error = FieldError::new(at, format!("there is no agent `{name}`"));
    match suggest::nearest(name, known.iter().copied()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}

fn unknown_tool(tools: &[Pattern], file: &ProjectFile, catalogue: &Catalogue, snapshot: &Snapshot) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (index, tool) in tools.iter().enumerate().filter(|(_, tool)| tool.is_literal()) {
        let name = tool.as_str();
        if snapshot.get(name).is_some() {
            continue;
        }
        let at = format!("/tools/{index}");
        if catalogue.may_appear(name) {
            let error =
                FieldError::new(at, format!("the tool `{name}` is not there now: its server is not connected, or it waits for you"));
            diagnostics.push(file.diagnose(Severity::Warning, &error.hint("`helve mcp list` shows the servers")));
            continue;
        }
        let error = FieldError::new(at, format!("there is no tool `{name}`"));
        let error = match suggest::nearest(name, snapshot.iter().map(|entry| &**entry.name())) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`helve tools` lists all tools"),
        };
        diagnostics.push(file.diagnose(Severity::Error, &error));
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
