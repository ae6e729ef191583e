//! `helve models`: which models are configured and which can be reached, and what one of them can do.

use std::process::ExitCode;
use std::time::Duration;

use helve::agent::probe;
use helve::model::ModelChoice;
use helve::model::{PROVIDERS, find_local, key_in_environment};
use helve::project::Trust;
use serde_json::{Value, json};

use crate::cli::{Global, Models, ModelsCommand};
use crate::failure::Failure;
use crate::table::{Cell, Table};
use crate::terminal::{self, FAINT, GOOD, STRONG, styled};
use crate::workspace::Workspace;

/// How long a model may take to show what it can do.
const PROBE: Duration = Duration::from_mins(3);

/// Lists models, or tries one.
pub fn run(models: &Models, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    match &models.command {
        None => Ok(list(global, workspace)),
        Some(ModelsCommand::Probe { name }) => try_one(name.as_deref(), global, workspace),
    }
}

fn list(global: &Global, workspace: &Workspace) -> ExitCode {
    let report = workspace.helve().project().unwrap_or_default();
    let mut rows: Vec<Value> = report
        .models
        .iter()
        .map(|(name, entry)| {
            let model = entry.model.clone().unwrap_or_else(|| name.clone());
            json!({"name": name, "provider": entry.provider, "model": model, "because": "models in helve.yaml"})
        })
        .collect();
    let waiting = report.capabilities.iter().filter(|_| !report.trust.is_some_and(Trust::allows));
    rows.extend(
        waiting.filter_map(|capability| capability.name.strip_prefix("model ")).map(
            |name| json!({"name": name, "provider": null, "model": null, "because": "models in helve.yaml; the folder is not trusted"}),
        ),
    );
    if !global.local {
        for provider in PROVIDERS.iter().filter(|provider| !provider.default_model.is_empty()) {
            if let Some((variable, _)) = key_in_environment(provider) {
                let (name, model) = (format!("{}/{}", provider.name, provider.default_model), provider.default_model);
                rows.push(json!({"name": name, "provider": provider.name, "model": model, "because": format!("{variable} is set")}));
            }
        }
    }
    for found in workspace.block_on(find_local(&helve::model::Fetch::default())) {
        let (provider, url) = (found.provider.name, found.provider.base_url);
        let name = format!("{provider}/{}", found.model);
        rows.push(json!({"name": name, "provider": provider, "model": found.model, "because": format!("a server answers at {url}")}));
    }
    if global.json {
        terminal::json(json!({"models": rows, "default": report.model}));
        return ExitCode::SUCCESS;
    }
    if rows.is_empty() {
        terminal::note("No model is configured, no key is set, and no server answers on this machine.");
        terminal::note("Set OPENROUTER_API_KEY or another provider's key, start Ollama or llama.cpp, or write `models:` into helve.yaml.");
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new(&["NAME", "PROVIDER", "BECAUSE"]);
    for row in &rows {
        let cell = |key: &str, style| Cell::new(row[key].as_str().unwrap_or_default(), style);
        table.row(vec![cell("name", STRONG), cell("provider", FAINT), cell("because", FAINT)]);
    }
    table.print();
    ExitCode::SUCCESS
}

fn try_one(name: Option<&str>, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let choice = ModelChoice { spec: name.map(ToOwned::to_owned).or_else(|| global.model.clone()), local_only: global.local, record: None };
    let helve = workspace.helve();
    workspace.block_on(async {
        let chosen = helve.model(&choice, None).await.map_err(|error| Failure::new("no_model", &error).hint(&error.hint))?;
        if !global.json {
            terminal::note(&styled(FAINT, "asking it to call a function, natively and held to a schema …"));
        }
        let probed = tokio::time::timeout(PROBE, probe(&*chosen.model)).await;
        let probed = probed.map_err(|_| Failure::new("model_timeout", "the model took too long to show what it can do"))?;
        let probed = probed.map_err(|error| Failure::new(error.kind(), &error).hint(error.hint()))?;
        helve.learn(&chosen, Some(probed.strategy()));
        let info = chosen.model.info();
        if global.json {
            terminal::json(json!({"model": info.name, "provider": info.provider, "function_calling": probed.native,
                "structured_output": probed.structured, "strategy": probed.strategy()}));
        } else {
            let word = |yes: bool| if yes { styled(GOOD, "yes") } else { styled(FAINT, "no") };
            terminal::print(&format!("calls functions natively  {}", word(probed.native)));
            terminal::print(&format!("can be held to a schema   {}", word(probed.structured)));
            terminal::print(&format!("calls will be carried as  {}", probed.strategy()));
        }
        Ok(ExitCode::SUCCESS)
    })
}
