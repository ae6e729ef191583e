//! What every command works with: the opened project, and the runtime its sources live on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helve::{Diagnostic, Helve, ProjectReport, Record, Redactor, View};
use tokio::runtime::Runtime;

use crate::cli::Global;
use crate::failure::Failure;

/// How long a listing waits for servers that are slow to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The opened project, and the runtime its sources live on.
pub struct Workspace {
    helve: Helve,
    /// Nothing only while it is being dropped.
    runtime: Option<Runtime>,
}

impl Workspace {
    /// Opens a project's folder.
    pub fn open(folder: &Path, redactor: &Redactor) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new("failed", format_args!("the runtime cannot start: {error}")))?;
        let helve = {
            let _inside = runtime.enter();
            Helve::open_with(folder, helve::StateFolder::of_user().ok(), redactor.clone()).map_err(|error| {
                Failure::new("not_found", format_args!("the folder {} cannot be opened: {error}", folder.display()))
                    .hint("give a project's folder with -C, or make one with `helve init DIR`")
            })?
        };
        Ok(Self { helve, runtime: Some(runtime) })
    }

    /// The project.
    pub fn helve(&self) -> &Helve {
        &self.helve
    }

    /// What its files say, once its servers have answered or had their time.
    pub fn report(&self) -> Arc<ProjectReport> {
        self.settle();
        self.helve.project().unwrap_or_default()
    }

    /// What is wrong with it.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.report().diagnostics.clone()
    }

    /// Waits for servers that are still connecting, for a while.
    pub fn settle(&self) {
        let catalogue = self.helve.catalogue();
        let _ = self.block_on(async { tokio::time::timeout(PATIENCE, catalogue.settled()).await });
    }

    /// Waits for a tool of a server that is still connecting, for a while. Other servers are not waited for once it is there.
    pub fn settle_for(&self, tool: &str) {
        let (catalogue, view) = (self.helve.catalogue(), View::default());
        let found = async {
            let mut snapshot = catalogue.snapshot(&view);
            while snapshot.get(tool).is_none() {
                tokio::select! {
                    next = catalogue.next(&view, &snapshot) => snapshot = next,
                    () = catalogue.settled() => return,
                }
            }
        };
        let _ = self.block_on(async { tokio::time::timeout(PATIENCE, found).await });
    }

    /// The record.
    pub fn record(&self, global: &Global) -> Result<Record, Failure> {
        let opened = self.block_on(self.helve.open_record(global.store.as_deref()));
        opened.map_err(|error| Failure::new("storage", &error).hint(&error.hint))
    }

    /// Runs work to its end.
    pub fn block_on<F: Future>(&self, work: F) -> F::Output {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            None => unreachable!("the runtime lives as long as the workspace"),
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A blocking tool that ignores its cancellation must not keep the command from ending.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
