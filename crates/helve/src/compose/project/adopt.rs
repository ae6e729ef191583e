//! Applies the loaded files of a project (rules, tools, servers, tool sets and agents), and reports errors and warnings.

use std::sync::Arc;

use helve_core::authored::FieldError;
use helve_core::{Permission, PermissionRule, Policy};
use helve_project::{Diagnostic, Gate, Severity};
use helve_tools::View;

use super::load::{LoadedProject, UNTRUSTED};
use super::{ProjectReport, resolve};
use crate::compose::Helve;

impl Helve {
    /// Applies loaded files: the rules first, so that no new tool runs under old rules.
    pub(super) fn adopt(&self, loaded: &LoadedProject) {
        let Some(project) = &self.project else { return };
        let expire = loaded.config.approvals.expire.map(|time| time.0);
        self.executor.set_policy(policy(loaded, &project.rules_of(loaded)).with_approval_time(expire));
        project.commands.set(&loaded.commands);
        project.native.set(&loaded.native);
        let mut diagnostics = loaded.diagnostics.clone();
        Self::note_servers(project, loaded);
        if project.connects {
            diagnostics.extend(self.connect_servers(project, loaded));
        }
        diagnostics.extend(unknown_source(loaded));
        self.catalogue.replace_sets(resolve::sets(loaded, &mut diagnostics));
        resolve::check_sets(loaded, &self.catalogue, &mut diagnostics);
        resolve::check_rules(loaded, &self.catalogue, &mut diagnostics);
        #[cfg(feature = "models")]
        crate::compose::model::check(loaded, &mut diagnostics);
        let report = ProjectReport {
            root: loaded.root.clone(),
            agents: resolve::agents(loaded, &self.catalogue, &mut diagnostics),
            default_agent: loaded.config.agent.as_deref().map(Arc::from),
            model: loaded.config.model.as_deref().map(Arc::from),
            models: Arc::new(loaded.config.models.clone()),
            settings_are_broken: loaded.config_is_broken,
            webhook: loaded.config.approvals.webhook.as_deref().map(Into::into),
            store: loaded.config.store.as_deref().map(Into::into),
            allowed_hosts: loaded.config.allowed_hosts.clone(),
            is_project: loaded.is_project,
            result_bytes: loaded.config.limits.result_bytes,
            diagnostics,
            capabilities: loaded.capabilities.clone(),
            trust: loaded.trust,
            waiting: loaded.waiting.clone(),
            sealed: loaded.sealed.clone(),
        };
        *project.report.write() = Arc::new(report);
        project.fingerprints.write().clone_from(&loaded.fingerprints);
    }

    /// Returns the current warnings: unavailable sources, displaced tools, and names that look alike.
    pub(super) fn warnings(&self) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let snapshot = self.catalogue.snapshot(&View::default());
        // An untrusted server is reported with its file.
        let idle = self.project.as_ref().map(|project| project.servers.idle_names()).unwrap_or_default();
        let is_idle = |source: &str| source.strip_prefix("mcp:").is_some_and(|name| idle.iter().any(|idle| idle == name));
        for lookalike in snapshot.lookalikes() {
            let file = lookalike.tool.spec().origin().location.clone();
            let warning = Diagnostic { file, ..Diagnostic::general(Severity::Warning, lookalike.to_string()) };
            warnings.push(warning.hint("check that both are intended, or rename one of them"));
        }
        for report in snapshot.sources() {
            if let Some(error) = report.error.as_ref().filter(|_| !is_idle(report.source.as_str())) {
                let message = format!("the source `{}` is unavailable: {error}", report.source);
                warnings.push(Diagnostic::general(Severity::Warning, message));
            }
            for displaced in &report.displaced {
                let message = format!("the tool `{}` is not used: `{}` already has a tool of this name", displaced.name, displaced.by);
                let warning = Diagnostic { file: displaced.location.clone(), ..Diagnostic::general(Severity::Warning, message) };
                let same = displaced.by == report.source;
                let servers = [&displaced.by, &report.source].iter().all(|source| source.as_str().starts_with("mcp:"));
                let hint = match (same, servers) {
                    (true, _) => "rename one of them",
                    (_, true) => "give one of the servers another `prefix`",
                    _ => "rename one of them, or change the order of `sources` in helve.yaml",
                };
                warnings.push(warning.hint(hint));
            }
        }
        warnings
    }
}

const SOURCES: [&str; 4] = ["builtin", "command", "native", "mcp"];

/// Returns the sources by rank: those in the settings, then the others. `command` follows `builtin` unless the settings name it.
pub(super) fn order(loaded: &LoadedProject) -> Vec<&'static str> {
    let named = loaded.config.sources.as_deref().unwrap_or_default();
    let mut order: Vec<&'static str> = Vec::new();
    for name in named {
        let Some(known) = SOURCES.into_iter().find(|known| known == name) else { continue };
        order.push(known);
        if known == "builtin" && !named.iter().any(|name| name == "command") {
            order.push("command");
        }
    }
    order.extend(SOURCES);
    let mut unique = Vec::new();
    for name in order {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

pub(in crate::compose) fn rank_of(loaded: &LoadedProject, source: &str) -> u32 {
    order(loaded).iter().position(|name| *name == source).and_then(|place| u32::try_from(place).ok()).unwrap_or(u32::MAX - 1)
}

fn unknown_source(loaded: &LoadedProject) -> Option<Diagnostic> {
    let named = loaded.config.sources.as_deref()?;
    let (index, name) = named.iter().enumerate().find(|(_, name)| !SOURCES.contains(&name.as_str()))?;
    let error = FieldError::new(format!("/sources/{index}"), format!("there is no source `{name}`"));
    let error = error.hint(format!("sources are {}", SOURCES.join(", ")));
    loaded.config_file.as_ref().map(|file| file.diagnose(Severity::Error, &error))
}

/// Returns the effective policy. The rules of an untrusted folder can only tighten, and agents need approval for its tools.
fn policy(loaded: &LoadedProject, rules: &[PermissionRule]) -> Policy {
    let mut rules = rules.to_vec();
    if loaded.config_is_broken {
        // The rules are unknown, so every call needs approval.
        rules.push(PermissionRule::default().permission(Permission::Confirm));
    }
    let trusted = loaded.gate() == Gate::Open;
    if !trusted {
        // Untrusted tools need approval by themselves; this also covers tools that were loaded while the folder was trusted.
        rules.extend(
            ["command", "native"]
                .map(|source| PermissionRule::default().source(source).agent("*").permission(Permission::Confirm).because(UNTRUSTED)),
        );
    }
    if trusted { Policy::new(rules) } else { Policy::new(rules).only_tightening() }
}
