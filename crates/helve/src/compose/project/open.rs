//! Opens a project folder.

use std::path::Path;
use std::sync::Arc;

use helve_core::Redactor;
use helve_project::{Gate, StateFolder};
use helve_tools::ExecutorOptions;

use super::adopt::{order, rank_of};
use super::load::LoadedProject;
use super::{FolderSource, Project};
use crate::compose::Helve;

/// Options for opening a project folder.
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
    /// Creates the default options: uses the user's state folder, connects to MCP servers, and does not add Helve's own tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the state folder, for trust decisions, pinned tools, logins and stores. With `None`, no project folder is trusted.
    pub fn state(mut self, state: Option<StateFolder>) -> Self {
        self.state = state;
        self
    }

    /// Sets the redactor. [`open`](Self::open) adds the secrets in environment variables to it.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Sets whether to connect to the project's MCP servers.
    pub fn connect(mut self, connect: bool) -> Self {
        self.connect = connect;
        self
    }

    /// Sets whether to add Helve's own tools, as the command line does. Requires the feature `builtins`.
    pub fn builtins(mut self, builtins: bool) -> Self {
        self.builtins = builtins;
        self
    }

    /// Opens the folder, and loads its tools, tool sets and agents. An invalid file does not affect the others; [`Helve::project`] reports
    /// errors and warnings.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    ///
    /// # Panics
    /// Panics outside of a Tokio runtime if the folder has MCP servers to connect to.
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
    /// Opens a project folder with default [`OpenOptions`].
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    ///
    /// # Panics
    /// Panics outside of a Tokio runtime if the folder has MCP servers to connect to.
    pub fn open(folder: impl AsRef<Path>) -> std::io::Result<Self> {
        OpenOptions::new().open(folder)
    }

    /// Adds the sources in the configured order.
    fn add_sources(&self, loaded: &LoadedProject, builtins: bool) {
        let Some(project) = &self.project else { return };
        for name in order(loaded) {
            let rank = rank_of(loaded, name) + 1;
            match name {
                "command" => self.add_folder_source(&project.commands, rank),
                "native" => self.add_folder_source(&project.native, rank),
                #[cfg(feature = "builtins")]
                "builtin" if builtins => self.catalogue.add_source_at(rank, Self::builtins()),
                // Servers are added when they are connected.
                _ => {}
            }
        }
        #[cfg(not(feature = "builtins"))]
        let _ = builtins;
    }

    fn add_folder_source(&self, source: &FolderSource, rank: u32) {
        self.catalogue.add_source_at(rank, source.trusted.clone());
        // An untrusted tool never displaces another tool.
        self.catalogue.add_source(source.untrusted.clone());
    }
}
