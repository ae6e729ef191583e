//! Helve with a project: its folder is read, followed and trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_core::authored::FieldError;
use helve_core::{ListSource, Permission, PermissionRule, Policy, Redactor, Schema, SourceState};
use helve_fetch::{Fetch, FetchOptions};
use helve_project::{
    AgentFile, Capability, Change, Diagnostic, Fingerprint, Gate, HelveFile, ModelEntry, SetFile, Severity, StateError, StateFolder, Trust,
    TrustStore,
};
use helve_tools::View;
use parking_lot::RwLock;
use serde_json::{Map, Value, json};

use super::Helve;
use super::load::{self, Loaded, Tools, UNTRUSTED, Workshop};
use super::mcp::Servers;
use super::resolve::{self, ProjectAgent};

/// How often a running Helve looks whether its files changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The project that a Helve serves.
pub(super) struct Project {
    pub(super) folder: PathBuf,
    pub(super) state: Option<StateFolder>,
    pub(super) fetch: Fetch,
    pub(super) commands: FolderSource,
    pub(super) native: FolderSource,
    now: RwLock<Arc<ProjectReport>>,
    /// The last rules that could be read.
    rules: RwLock<Vec<PermissionRule>>,
    /// What the files looked like when they were read.
    seen: RwLock<Seen>,
    /// The servers that are connected.
    pub(super) servers: Servers,
    /// Whether servers are connected at all.
    connects: bool,
}

/// Tools of the folder as two sources of the same name: those that work stand where the settings say, those that wait come last.
pub(super) struct FolderSource {
    pub(super) open: Arc<ListSource>,
    pub(super) waiting: Arc<ListSource>,
}

impl FolderSource {
    fn new(name: &str) -> Self {
        let source = || Arc::new(ListSource::new(name, []));
        Self { open: source(), waiting: source() }
    }

    fn set(&self, tools: &Tools) {
        self.open.set(SourceState::Ready(tools.open.iter().cloned().collect()));
        self.waiting.set(SourceState::Ready(tools.waiting.iter().cloned().collect()));
    }
}

#[derive(Default)]
struct Seen {
    files: Fingerprint,
    /// Files beside the project's own that count.
    beside: Vec<PathBuf>,
    files_beside: Fingerprint,
    /// What people have decided, maybe in another process.
    decisions: Fingerprint,
}

/// What a project's files say, as far as people are concerned.
#[derive(Clone, Default)]
pub struct ProjectReport {
    /// The folder.
    pub root: PathBuf,
    /// The agents that can be used.
    pub agents: Vec<ProjectAgent>,
    /// The name of the agent that answers unless another is asked for, if the settings name one.
    pub default_agent: Option<Arc<str>>,
    /// The model that agents use unless they say otherwise.
    pub model: Option<Arc<str>>,
    /// Models by names of the project's own.
    pub models: Arc<BTreeMap<String, ModelEntry>>,
    /// Whether there are settings that cannot be read.
    pub settings_are_broken: bool,
    /// Who is told of new requests.
    pub webhook: Option<Arc<str>>,
    /// Where the record is, if the settings say so.
    pub store: Option<Arc<str>>,
    /// Names by which this machine is reached.
    pub allowed_hosts: Vec<String>,
    /// Whether the folder describes anything.
    pub is_project: bool,
    /// How much of a result a model is told.
    pub result_bytes: Option<u64>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// What the folder can do once it is trusted.
    pub capabilities: Vec<Capability>,
    /// Whether a person trusts it with that; nothing where decisions cannot be read.
    pub trust: Option<Trust>,
    /// Files of tools and servers that wait for trust, while the rest of the folder may have it.
    pub waiting: BTreeSet<String>,
    /// Settings that wait for trust: the file, and the field in it.
    pub sealed: Vec<(Arc<str>, String)>,
}

/// What is different from what a person agreed to when they trusted a folder.
#[derive(Debug, Clone, Default)]
pub struct TrustChanges {
    /// What is new or has changed.
    pub changed: Vec<(Capability, Change)>,
    /// Settings that are gone.
    pub missing: Vec<Capability>,
}

impl Project {
    /// A project that was not read yet.
    pub(super) fn new(folder: PathBuf, state: Option<StateFolder>, connects: bool) -> Self {
        Self {
            folder,
            state,
            fetch: Fetch::new(FetchOptions::default()),
            commands: FolderSource::new("command"),
            native: FolderSource::new("native"),
            now: RwLock::default(),
            rules: RwLock::default(),
            seen: RwLock::default(),
            servers: Servers::default(),
            connects,
        }
    }

    /// Reads the files, and lets them through the gate as far as a person trusts the folder.
    pub(super) fn load(&self, redactor: &Redactor) -> std::io::Result<Loaded> {
        // Before they are read: a decision in between is then seen as a change.
        let seen_decisions = self.fingerprint_of_decisions();
        let decisions = self.decisions();
        let mut loaded = load::load(&self.folder, &Workshop { fetch: &self.fetch, redactor }, decisions.as_ref().ok())?;
        loaded.seen_decisions = seen_decisions;
        if let Err(error) = &decisions
            && self.state.is_some()
            && !loaded.capabilities.is_empty()
        {
            let message = format!("nothing in this folder is trusted, because decisions cannot be read: {error}");
            loaded.diagnostics.push(Diagnostic::general(Severity::Warning, message));
        }
        Ok(loaded)
    }

    fn fingerprint_of_decisions(&self) -> Fingerprint {
        Fingerprint::of_files(&self.state.as_ref().map(TrustStore::file).into_iter().collect::<Vec<_>>())
    }

    /// What people have decided about folders.
    fn decisions(&self) -> Result<TrustStore, StateError> {
        TrustStore::open(self.state.clone().ok_or(StateError::Nowhere)?)
    }

    /// The rules of the settings. Where those cannot be read, the last that could, so that what was denied stays denied.
    fn rules_of(&self, loaded: &Loaded) -> Vec<PermissionRule> {
        let mut rules = self.rules.write();
        if !loaded.config_is_broken {
            rules.clone_from(&loaded.config.permissions);
        }
        rules.clone()
    }
}

impl Helve {
    /// Reads the project's files again. Running calls go on; agents see the change at their next turn.
    ///
    /// # Errors
    /// Where the folder is gone; everything stays as it was.
    pub fn reload(&self) -> std::io::Result<()> {
        if let Some(project) = &self.project {
            self.adopt(&project.load(&self.redactor)?);
        }
        Ok(())
    }

    /// Watches the project's files and reads them again when they change. It never ends; drop it to stop.
    pub async fn follow(&self) {
        let Some(project) = &self.project else { return std::future::pending().await };
        let changed = || {
            let seen = project.seen.read();
            Fingerprint::of(&project.folder) != seen.files
                || Fingerprint::of_files(&seen.beside) != seen.files_beside
                || project.fingerprint_of_decisions() != seen.decisions
        };
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if changed() {
                match self.reload() {
                    Ok(()) => tracing::info!(folder = %project.folder.display(), "the project was read again"),
                    Err(error) => tracing::warn!(%error, "the project cannot be read; it stays as it was"),
                }
            }
        }
    }

    /// Lets what the files say hold from now on: the rules first, so that nothing new runs under the old ones.
    pub(super) fn adopt(&self, loaded: &Loaded) {
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
        diagnostics.extend(unknown_sources(loaded));
        self.catalogue.replace_sets(resolve::sets(loaded, &mut diagnostics));
        resolve::check_sets(loaded, &self.catalogue, &mut diagnostics);
        resolve::check_rules(loaded, &self.catalogue, &mut diagnostics);
        #[cfg(feature = "models")]
        super::model::check(loaded, &mut diagnostics);
        let agents = resolve::agents(loaded, &self.catalogue, &mut diagnostics);
        let default_agent = loaded.config.agent.as_deref().map(Arc::from);
        let report = ProjectReport {
            root: loaded.root.clone(),
            agents,
            default_agent,
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
        *project.now.write() = Arc::new(report);
        let seen = Seen {
            files: loaded.seen.clone(),
            beside: loaded.beside.clone(),
            files_beside: loaded.seen_beside.clone(),
            decisions: loaded.seen_decisions.clone(),
        };
        *project.seen.write() = seen;
    }

    /// The folder in which the user's own decisions are kept.
    #[cfg(any(feature = "models", feature = "store"))]
    pub(super) fn state(&self) -> Option<&StateFolder> {
        self.project.as_ref()?.state.as_ref()
    }

    /// The connections that the project's sources share.
    #[cfg(any(feature = "models", feature = "store"))]
    pub(super) fn fetch(&self) -> Fetch {
        self.project.as_ref().map(|project| project.fetch.clone()).unwrap_or_default()
    }

    /// What the project's files say; nothing where there is no project.
    #[must_use]
    pub fn project(&self) -> Option<Arc<ProjectReport>> {
        let project = self.project.as_ref()?;
        let mut report = ProjectReport::clone(&project.now.read());
        report.diagnostics.extend(self.warnings());
        report.diagnostics.extend(project.servers.warnings());
        Some(Arc::new(report))
    }

    /// What is odd about the sources now: those that are down, and tools that others displace.
    fn warnings(&self) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let snapshot = self.catalogue.snapshot(&View::default());
        // A server that waits for trust is reported with its file.
        let idle = self.project.as_ref().map(|project| project.servers.idle_names()).unwrap_or_default();
        let is_idle = |source: &str| source.strip_prefix("mcp:").is_some_and(|name| idle.iter().any(|idle| idle == name));
        for lookalike in snapshot.lookalikes() {
            let file = lookalike.tool.spec().origin().location.clone();
            let warning = Diagnostic { file, ..Diagnostic::general(Severity::Warning, lookalike.to_string()) };
            warnings.push(warning.hint("make sure that both are what you want, and rename or leave out one of them"));
        }
        for report in snapshot.sources() {
            if let Some(trouble) = report.trouble.as_ref().filter(|_| !is_idle(report.source.as_str())) {
                let message = format!("source `{}` has no tools now: {trouble}", report.source);
                warnings.push(Diagnostic::general(Severity::Warning, message));
            }
            for displaced in &report.displaced {
                let message = format!("the tool `{}` is not used: `{}` already has one of this name", displaced.name, displaced.by);
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

    /// Trusts the project's folder with what it would run now.
    ///
    /// # Errors
    /// Where the decision cannot be kept.
    pub fn trust(&self) -> Result<(), StateError> {
        let Some(project) = &self.project else { return Ok(()) };
        let report = project.now.read().clone();
        project.decisions()?.trust(&report.root, &report.capabilities)?;
        let _ = self.reload();
        Ok(())
    }

    /// Trusts it with one file of that, too.
    ///
    /// # Errors
    /// Where the decision cannot be kept.
    pub fn trust_file(&self, file: &str) -> Result<(), StateError> {
        let Some(project) = &self.project else { return Ok(()) };
        let report = project.now.read().clone();
        let agreed: Vec<Capability> = report.capabilities.iter().filter(|capability| capability.file == file).cloned().collect();
        project.decisions()?.trust_more(&report.root, &agreed)?;
        let _ = self.reload();
        Ok(())
    }

    /// What is different from what a person agreed to when they trusted the folder, and the settings that are gone.
    ///
    /// # Errors
    /// Where decisions cannot be read.
    pub fn trust_changes(&self) -> Result<TrustChanges, StateError> {
        let Some(project) = &self.project else { return Ok(TrustChanges::default()) };
        let report = project.now.read().clone();
        let decisions = project.decisions()?;
        let changed = report.capabilities.iter().filter_map(|one| Some((one.clone(), decisions.change(&report.root, one)?))).collect();
        Ok(TrustChanges { changed, missing: decisions.missing(&report.root, &report.capabilities) })
    }

    /// Trusts the project's folder no longer; says whether it was trusted.
    ///
    /// # Errors
    /// Where the decision cannot be kept.
    pub fn revoke_trust(&self) -> Result<bool, StateError> {
        let Some(project) = &self.project else { return Ok(false) };
        let known = project.decisions()?.revoke(&project.folder)?;
        let _ = self.reload();
        Ok(known)
    }
}

const SOURCES: [&str; 4] = ["builtin", "command", "native", "mcp"];

/// The sources in their order: those that are named, then the others. Command tools are built-in unless named apart.
pub(super) fn order(loaded: &Loaded) -> Vec<&'static str> {
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
    let mut seen = Vec::new();
    order.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    order
}

pub(super) fn rank_of(loaded: &Loaded, source: &str) -> u32 {
    order(loaded).iter().position(|name| *name == source).and_then(|place| u32::try_from(place).ok()).unwrap_or(u32::MAX - 1)
}

fn unknown_sources(loaded: &Loaded) -> Option<Diagnostic> {
    let named = loaded.config.sources.as_deref()?;
    let (index, name) = named.iter().enumerate().find(|(_, name)| !SOURCES.contains(&name.as_str()))?;
    let error = FieldError::new(format!("/sources/{index}"), format!("there is no source `{name}`"));
    let error = error.hint(format!("sources are {}", SOURCES.join(", ")));
    loaded.config_file.as_ref().map(|file| file.diagnose(Severity::Error, &error))
}

/// The rules that hold. Until a person trusts the folder, its rules only tighten, and agents ask before they use its tools; in a trusted
/// one they ask before they use those that nobody has agreed to.
fn policy(loaded: &Loaded, rules: &[PermissionRule]) -> Policy {
    let mut rules = rules.to_vec();
    if loaded.config_is_broken {
        // The rules in it are not known, so a person decides about every call.
        rules.push(PermissionRule::default().permission(Permission::Confirm));
    }
    let trusted = loaded.gate() == Gate::Open;
    if !trusted {
        // Tools that wait say by themselves that agents ask; this holds also for tools that were loaded while the folder was trusted.
        rules.extend(
            ["command", "native"]
                .map(|source| PermissionRule::default().source(source).agent("*").permission(Permission::Confirm).because(UNTRUSTED)),
        );
    }
    if trusted { Policy::new(rules) } else { Policy::new(rules).only_tightening() }
}

/// The JSON Schemas of a project's files, by the name that `helve schema` uses.
#[must_use]
pub fn file_schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("helve", Schema::of::<HelveFile>()),
        ("command", Schema::of::<helve_command::CommandDefinition>()),
        ("native", Schema::of::<helve_http::HttpDefinition>()),
        ("openapi", Schema::of::<helve_http::OpenApiDefinition>()),
        ("mcp", either(&Schema::of::<helve_mcp::McpDefinition>(), &Schema::of::<helve_http::RemoteDefinition>())),
        ("set", Schema::of::<SetFile>()),
        ("agent", Schema::of::<AgentFile>()),
    ]
}

/// A file that is one of two kinds.
fn either(one: &Schema, other: &Schema) -> Schema {
    let mut definitions = Map::new();
    let kinds = [one, other].map(|schema| {
        let mut kind = schema.value().clone();
        if let Some(fields) = kind.as_object_mut() {
            // References begin at the root of the document.
            if let Some(Value::Object(own)) = fields.remove("$defs") {
                definitions.extend(own);
            }
            fields.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        kind
    });
    let both = json!({"type": "object", "anyOf": kinds, "$defs": definitions, "additionalProperties": true});
    Schema::new(both).unwrap_or_else(|_| one.clone())
}
