//! `helve prompt`: the instructions a model gets that calls tools in plain text.

use std::process::ExitCode;

use helve::catalogue::{Toolkit, View};
use helve::dialect::{Choice, Language, Prompt, PromptFormat, PromptTool};
use helve::internal::{printable, suggest};
use helve::project::ProjectReport;
use serde_json::json;

use super::show_diagnostics;
use crate::cli::{self, Global};
use crate::failure::Failure;
use crate::terminal;
use crate::workspace::Workspace;

/// Prints the instructions for one agent, or for the whole catalogue where there is no agent.
pub fn run(prompt: &cli::Prompt, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let report = workspace.report();
    let toolkit = toolkit(prompt, &report, workspace)?;
    let form = match prompt.dialect {
        cli::PromptDialect::Json => PromptFormat::Json,
        cli::PromptDialect::Xml => PromptFormat::Xml,
    };
    let language = match prompt.language {
        cli::PromptLanguage::En => Language::English,
        cli::PromptLanguage::Zh => Language::Chinese,
    };
    let list = toolkit.model_list().tools();
    let tools: Vec<PromptTool<'_>> = list
        .iter()
        .map(|tool| PromptTool { name: &tool.name, description: &tool.description, parameters: tool.parameters.value() })
        .collect();
    let mut writer = Prompt::new(form).language(language);
    if prompt.compact {
        writer = writer.compact(true);
    }
    let text = writer.instructions(&tools, Choice::Auto);
    if global.json {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
        let agent = toolkit.agent().map(|agent| &**agent);
        terminal::json(json!({
            "dialect": form.as_str(), "language": language.as_str(), "agent": agent, "tools": names, "prompt": text,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if tools.is_empty() {
        terminal::note("There are no tools to call, so a model is told nothing.");
    } else {
        terminal::print(&printable::escape(&text));
    }
    show_diagnostics(&report.diagnostics);
    Ok(ExitCode::SUCCESS)
}

/// The tools of the agent that is asked for, of the project's own choice, of its only agent, or all.
fn toolkit(prompt: &cli::Prompt, report: &ProjectReport, workspace: &Workspace) -> Result<Toolkit, Failure> {
    let names = || report.agents.iter().map(|agent| agent.file.name.as_str());
    let wanted = prompt.agent.as_deref().or(report.default_agent.as_deref());
    let agent = match (wanted, report.agents.as_slice()) {
        (Some(name), agents) => agents.iter().find(|agent| agent.file.name == name).ok_or_else(|| {
            let hint = suggest::nearest(name, names())
                .map_or_else(|| "helve agents lists them".to_owned(), |near| format!("did you mean `{near}`? helve agents lists all"));
            Failure::new("not_found", format_args!("there is no agent `{name}`")).hint(hint)
        })?,
        (None, [only]) => only,
        (None, []) => return Ok(Toolkit::everything(&workspace.helve().catalogue().snapshot(&View::default()))),
        (None, _) => {
            let known = names().collect::<Vec<_>>().join(", ");
            return Err(Failure::new("bad_request", "there are several agents, and none of them is the project's own choice")
                .hint(format_args!("name one with --agent ({known}), or with `agent:` in helve.yaml")));
        }
    };
    workspace.helve().catalogue().toolkit(&agent.selection, &View::default()).map_err(|error| Failure::new("not_found", error))
}
