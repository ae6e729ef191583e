//! Opening a project's folder.

use std::path::Path;
use std::sync::Arc;

use helve_core::Redactor;
use helve_project::{Gate, StateFolder};
use helve_tools::ExecutorOptions;

use super::Helve;
use super::load::Loaded;
use super::project::{FolderSource, Project, order, rank_of};

/// How a project's folder is opened.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// let helve = helve::project::OpenOptions::new().builtins(true).connect(false).open("house")?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is opened before `open`"]
#[derive(Debug, Clone)]
pub struct OpenOptions {
    state: Option<StateFolder>,
    redactor: Redactor,
    connect: bool,
    builtins: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { state: StateFolder::of_user().ok(), redactor: Redactor::default(), connect: true, builtins: false }
    }
}

impl OpenOptions {
    /// Trust is looked up in the user's state folder, servers are connected, and there are no built-in tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps trust, pins, logins and stores in this folder; without one, nothing is trusted.
    pub fn state(mut self, state: Option<StateFolder>) -> Self {
        self.state = state;
        self
    }

    /// Knows secrets that must never show, besides those of the environment.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Whether the project's servers are connected.
    pub fn connect(mut self, connect: bool) -> Self {
        self.connect = connect;
        self
    }

    /// Whether the tools that come with Helve are there, as on the command line. Needs the feature `builtins`.
    pub fn builtins(mut self, builtins: bool) -> Self {
        self.builtins = builtins;
        self
    }

    /// Opens the folder: its tools, sets and agents. A broken file costs only itself; see [`Helve::project`].
    ///
    /// # Errors
    /// Where the folder is not there.
    ///
    /// # Panics
    /// Outside of a tokio runtime, if servers are connected.
    pub fn open(self, folder: impl AsRef<Path>) -> std::io::Result<Helve> {
        let project = Project::new(folder.as_ref().canonicalize()?, self.state, self.connect);
        let loaded = project.load(&self.redactor)?;
        let mut options = ExecutorOptions::default().redactor(self.redactor).store_secrets(loaded.config.store_secrets);
        if let Some(concurrency) = loaded.config.limits.concurrency {
            let most = if loaded.gate() == Gate::Open { usize::MAX } else { options.concurrency };
            options.concurrency = most.min(concurrency.get() as usize);
        }
        let helve = Helve { project: Some(Arc::new(project)), ..Helve::with_options(options) };
        helve.add_sources(&loaded, self.builtins);
        helve.adopt(&loaded);
        Ok(helve)
    }
}

impl Helve {
    /// Opens a project's folder with [`OpenOptions::new`].
    ///
    /// # Errors
    /// Where the folder is not there.
    ///
    /// # Panics
    /// Outside of a tokio runtime, if the folder has servers.
    pub fn open(folder: impl AsRef<Path>) -> std::io::Result<Self> {
        OpenOptions::new().open(folder)
    }

    /// Adds the sources in the order of the project's settings.
    fn add_sources(&self, loaded: &Loaded, builtins: bool) {
        let Some(project) = &self.project else { return };
        for name in order(loaded) {
            let rank = rank_of(loaded, name) + 1;
            match name {
                "command" => self.add_folder_source(&project.commands, rank),
                "native" => self.add_folder_source(&project.native, rank),
                #[cfg(feature = "builtins")]
                "builtin" if builtins => self.catalogue.add_source_at(rank, Self::builtins()),
                // Servers take their place when they are connected.
                _ => {}
            }
        }
        #[cfg(not(feature = "builtins"))]
        let _ = builtins;
    }

    fn add_folder_source(&self, source: &FolderSource, rank: u32) {
        self.catalogue.add_source_at(rank, source.open.clone());
        // What waits for trust never takes the place of a tool that works.
        self.catalogue.add_source(source.waiting.clone());
    }
}
