//! `helve models`: lists configured and reachable models, and probes one.

use std::process::ExitCode;
use std::time::Duration;

use helve::agent::probe;
use helve::model::{ModelChoice, PROVIDERS, find_local, key_in_environment};
use helve::project::Trust;
use serde_json::{Value, json};

use crate::cli::{Global, Models, ModelsCommand};
use crate::failure::Failure;
use crate::terminal::table::{Cell, Table};
use crate::terminal::{self, FAINT, GOOD, STRONG, styled};
use crate::workspace::Workspace;

/// Timeout of a probe, for both requests together.
const PROBE_TIMEOUT: Duration = Duration::from_mins(3);

/// Lists models, or probes one.
pub fn run(models: &Models, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    match &models.command {
        None => Ok(list(global, workspace)),
        Some(ModelsCommand::Probe { name }) => run_probe(name.as_deref(), global, workspace),
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
        rows.push(json!({"name": name, "provider": provider, "model": found.model, "because": format!("a server runs at {url}")}));
    }
    if global.json {
        terminal::json(json!({"models": rows, "default": report.model}));
        return ExitCode::SUCCESS;
    }
    if rows.is_empty() {
        terminal::note("No models: none is configured, no API key is set, and no model server runs on this machine.");
        terminal::note("Set OPENROUTER_API_KEY or another provider's API key, start Ollama or llama.cpp, or add `models:` to helve.yaml.");
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new(&["NAME", "PROVIDER", "FOUND BY"]);
    for row in &rows {
        let cell = |key: &str, style| Cell::new(row[key].as_str().unwrap_or_default(), style);
        table.row(vec![cell("name", STRONG), cell("provider", FAINT), cell("because", FAINT)]);
    }
    table.print();
    ExitCode::SUCCESS
}

fn run_probe(name: Option<&str>, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let choice = ModelChoice { spec: name.map(ToOwned::to_owned).or_else(|| global.model.clone()), local_only: global.local, record: None };
    let helve = workspace.helve();
    workspace.block_on(async {
        let chosen = helve.model(&choice, None).await?;
        if !global.json {
            terminal::note_faintly("probing function calling and structured output …");
        }
        let probed = tokio::time::timeout(PROBE_TIMEOUT, probe(&*chosen.model)).await;
        let probed = probed.map_err(|_| Failure::new("model_timeout", "the model did not respond to the probe in time"))?;
        let probed = probed.map_err(|error| Failure::new(error.kind(), &error).hint(error.hint()))?;
        helve.remember_strategy(&chosen, probed.strategy());
        let info = chosen.model.info();
        if global.json {
            terminal::json(json!({"model": info.name, "provider": info.provider, "function_calling": probed.native,
                "structured_output": probed.structured, "strategy": probed.strategy()}));
        } else {
            let word = |yes: bool| if yes { styled(GOOD, "yes") } else { styled(FAINT, "no") };
            terminal::print(&format!("function calling   {}", word(probed.native)));
            terminal::print(&format!("structured output  {}", word(probed.structured)));
            terminal::print(&format!("strategy           {}", probed.strategy()));
        }
        Ok(ExitCode::SUCCESS)
    })
}
