//! `helve prompt`: prints the instructions for models that write tool calls as text.

use std::process::ExitCode;

use helve::catalogue::View;
use helve::dialect::{Choice, Language, Prompt, PromptFormat, PromptTool};
use helve::internal::printable;
use serde_json::json;

use super::show_diagnostics;
use crate::cli::{self, Global};
use crate::failure::Failure;
use crate::terminal;
use crate::workspace::Workspace;

/// Prints the instructions for one agent, or for all tools if the project has no agent.
pub fn run(prompt: &cli::Prompt, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let report = workspace.report();
    let helve = workspace.helve();
    let toolkit = match helve.choose_agent(prompt.agent.as_deref())? {
        Some(agent) => helve.catalogue().toolkit(&agent.selection, &View::default()).map_err(|error| Failure::new("not_found", error))?,
        None => helve.toolkit(),
    };
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
        terminal::note("There are no tools, so there are no instructions.");
    } else {
        terminal::print(&printable::escape(&text));
    }
    show_diagnostics(&report.diagnostics);
    Ok(ExitCode::SUCCESS)
}
