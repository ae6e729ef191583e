//! Opens, reloads and watches the project folder of a [`Helve`], and reports what the folder contains.

mod adopt;
mod capability;
mod document;
mod folder_tool;
mod load;
mod open;
mod resolve;
mod schemas;
mod trust;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_core::{ListSource, PermissionRule, Redactor, SourceState};
use helve_fetch::{Fetch, FetchOptions};
use helve_project::{Capability, Diagnostic, Fingerprint, ModelEntry, Severity, StateError, StateFolder, Trust, TrustStore};
use parking_lot::RwLock;

pub(super) use self::adopt::rank_of;
#[cfg(feature = "sqlite")]
pub(super) use self::capability::STORE;
pub(super) use self::load::LoadedProject;
use self::load::{Fingerprints, FolderTools, LoadContext};
pub use self::open::OpenOptions;
pub use self::resolve::ProjectAgent;
#[cfg(feature = "models")]
pub(super) use self::resolve::unknown as unknown_name;
pub use self::schemas::file_schemas;
pub use self::trust::TrustChanges;
use super::Helve;
use super::mcp::Servers;

/// Interval between checks for changed files.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// A project folder and its current state.
pub(super) struct Project {
    pub(super) folder: PathBuf,
    pub(super) state: Option<StateFolder>,
    pub(super) fetch: Fetch,
    commands: FolderSource,
    native: FolderSource,
    report: RwLock<Arc<ProjectReport>>,
    /// The last valid permission rules.
    rules: RwLock<Vec<PermissionRule>>,
    /// Fingerprints of the files when they were last read.
    fingerprints: RwLock<Fingerprints>,
    pub(super) servers: Servers,
    /// Whether Helve connects to the project's MCP servers.
    connects: bool,
}

/// The tools of the folder, as two sources of the same name: trusted tools rank as the settings say, untrusted tools rank last.
struct FolderSource {
    trusted: Arc<ListSource>,
    untrusted: Arc<ListSource>,
}

impl FolderSource {
    fn new(name: &str) -> Self {
        let source = || Arc::new(ListSource::new(name, []));
        Self { trusted: source(), untrusted: source() }
    }

    fn set(&self, tools: &FolderTools) {
        self.trusted.set(SourceState::Ready(tools.trusted.iter().cloned().collect()));
        self.untrusted.set(SourceState::Ready(tools.untrusted.iter().cloned().collect()));
    }
}

/// What a project folder contains: agents, settings, trust, and errors and warnings.
#[derive(Clone, Default)]
pub struct ProjectReport {
    /// The path of the folder.
    pub root: PathBuf,
    /// The agents without errors.
    pub agents: Vec<ProjectAgent>,
    /// The name of the default agent, if the settings set one.
    pub default_agent: Option<Arc<str>>,
    /// The default model of agents, if the settings set one.
    pub model: Option<Arc<str>>,
    /// The models that the settings define, by name.
    pub models: Arc<BTreeMap<String, ModelEntry>>,
    /// Whether `helve.yaml` has an error, so that its settings are unknown.
    pub settings_are_broken: bool,
    /// The URL to which Helve sends new approval requests.
    pub webhook: Option<Arc<str>>,
    /// The URL of the store, if the settings set one.
    pub store: Option<Arc<str>>,
    /// Host names that Helve's MCP server accepts.
    pub allowed_hosts: Vec<String>,
    /// Whether the folder contains any project file.
    pub is_project: bool,
    /// Maximum size of a tool result for the model, in bytes.
    pub result_bytes: Option<u64>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The capabilities of the folder: what it can do once it is trusted.
    pub capabilities: Vec<Capability>,
    /// Whether the folder is trusted; `None` if the stored decisions cannot be read.
    pub trust: Option<Trust>,
    /// Files of tools and servers that are not trusted, while the rest of the folder may be.
    pub waiting: BTreeSet<String>,
    /// Settings that are not used until the folder is trusted: file and field.
    pub sealed: Vec<(Arc<str>, String)>,
}

impl Project {
    /// Creates a project whose files are not loaded yet.
    pub(super) fn new(folder: PathBuf, state: Option<StateFolder>, connects: bool) -> Self {
        Self {
            folder,
            state,
            fetch: Fetch::new(FetchOptions::default()),
            commands: FolderSource::new("command"),
            native: FolderSource::new("native"),
            report: RwLock::default(),
            rules: RwLock::default(),
            fingerprints: RwLock::default(),
            servers: Servers::default(),
            connects,
        }
    }

    /// Loads the files. Only trusted files can do everything that they say.
    fn load(&self, redactor: &Redactor) -> std::io::Result<LoadedProject> {
        // Computed first, so that a decision during the loading counts as a change.
        let fingerprint = self.fingerprint_of_decisions();
        let decisions = self.decisions();
        let mut loaded = load::load(&self.folder, &LoadContext { fetch: &self.fetch, redactor }, decisions.as_ref().ok())?;
        loaded.fingerprints.decisions = fingerprint;
        if let Err(error) = &decisions
            && self.state.is_some()
            && !loaded.capabilities.is_empty()
        {
            let message = format!("cannot read the stored trust decisions, so the folder is not trusted: {error}");
            loaded.diagnostics.push(Diagnostic::general(Severity::Warning, message));
        }
        Ok(loaded)
    }

    fn fingerprint_of_decisions(&self) -> Fingerprint {
        Fingerprint::of_files(&self.state.as_ref().map(TrustStore::file).into_iter().collect::<Vec<_>>())
    }

    /// Opens the stored trust decisions.
    fn decisions(&self) -> Result<TrustStore, StateError> {
        TrustStore::open(self.state.clone().ok_or(StateError::Nowhere)?)
    }

    /// Returns the permission rules of the settings. If the settings are invalid, returns the last valid rules, so that what was denied
    /// stays denied.
    fn rules_of(&self, loaded: &LoadedProject) -> Vec<PermissionRule> {
        let mut rules = self.rules.write();
        if !loaded.config_is_broken {
            rules.clone_from(&loaded.config.permissions);
        }
        rules.clone()
    }
}

/// # Project folder
impl Helve {
    /// Reloads the project's files. Running calls continue; agents see the change in their next turn.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read. The last state stays in effect.
    pub fn reload(&self) -> std::io::Result<()> {
        if let Some(project) = &self.project {
            self.adopt(&project.load(&self.redactor)?);
        }
        Ok(())
    }

    /// Watches the project's files and reloads them when they change. The future never completes; drop it to stop.
    pub async fn follow(&self) {
        let Some(project) = &self.project else { return std::future::pending().await };
        let changed = || {
            let last = project.fingerprints.read();
            Fingerprint::of(&project.folder) != last.folder
                || Fingerprint::of_files(&last.extra_files) != last.extra
                || project.fingerprint_of_decisions() != last.decisions
        };
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            if changed() {
                match self.reload() {
                    Ok(()) => tracing::info!(folder = %project.folder.display(), "project reloaded"),
                    Err(error) => tracing::warn!(%error, "cannot reload the project; its last state stays in effect"),
                }
            }
        }
    }

    /// Returns the user's state folder.
    #[cfg(any(feature = "models", feature = "store"))]
    pub(super) fn state(&self) -> Option<&StateFolder> {
        self.project.as_ref()?.state.as_ref()
    }

    /// Returns the HTTP client of the project's sources.
    #[cfg(any(feature = "models", feature = "store"))]
    pub(super) fn fetch(&self) -> Fetch {
        self.project.as_ref().map(|project| project.fetch.clone()).unwrap_or_default()
    }

    /// Returns the report on the project folder, with the current warnings, or `None` if there is no project.
    #[must_use]
    pub fn project(&self) -> Option<Arc<ProjectReport>> {
        let project = self.project.as_ref()?;
        let mut report = ProjectReport::clone(&project.report.read());
        report.diagnostics.extend(self.warnings());
        report.diagnostics.extend(project.servers.warnings());
        Some(Arc::new(report))
    }
}
