//! What every command works with: the opened project, and the runtime its sources live on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helve::Helve;
use helve::catalogue::View;
use helve::project::{Diagnostic, OpenOptions, ProjectReport};
use helve::secret::Redactor;
use helve::store::StoreHandle;
use tokio::runtime::Runtime;

use crate::cli::Global;
use crate::failure::{self, Failure};

/// How long a listing waits for servers that are slow to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a call waits for a server that could bring its tool: without it there is nothing to call.
const CALL_PATIENCE: Duration = Duration::from_secs(30);

/// The opened project, and the runtime its sources live on.
pub struct Workspace {
    helve: Helve,
    /// Nothing only while it is being dropped.
    runtime: Option<Runtime>,
}

impl Workspace {
    /// Opens a project's folder, and connects its servers.
    pub fn open(folder: &Path, redactor: &Redactor) -> Result<Self, Failure> {
        Self::opened(folder, redactor, true)
    }

    /// Opens a project's folder for work that no server is needed for.
    pub fn open_alone(folder: &Path, redactor: &Redactor) -> Result<Self, Failure> {
        Self::opened(folder, redactor, false)
    }

    fn opened(folder: &Path, redactor: &Redactor, servers: bool) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new("failed", format_args!("the runtime cannot start: {error}")))?;
        let helve = {
            let _inside = runtime.enter();
            OpenOptions::new().redactor(redactor.clone()).connect(servers).builtins(true).open(folder).map_err(|error| {
                Failure::new("not_found", format_args!("the folder {} cannot be opened: {error}", folder.display()))
                    .hint("give a project's folder with -C, or make one with `helve init DIR`")
            })?
        };
        runtime.spawn(end_with_programs());
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
        let _ = self.block_on(unless_interrupted(async { tokio::time::timeout(PATIENCE, catalogue.settled()).await }));
    }

    /// Waits for a tool of a server that is still connecting, for a while. Other servers are not waited for once it is there.
    pub fn settle_for(&self, tool: &str) {
        let (catalogue, view) = (self.helve.catalogue(), View::default());
        let patience = if catalogue.may_appear(tool) { CALL_PATIENCE } else { PATIENCE };
        let found = async {
            let mut snapshot = catalogue.snapshot(&view);
            while snapshot.get(tool).is_none() {
                tokio::select! {
                    next = catalogue.next(&view, &snapshot) => snapshot = next,
                    () = catalogue.settled() => return,
                }
            }
        };
        let _ = self.block_on(unless_interrupted(async { tokio::time::timeout(patience, found).await }));
    }

    /// The store.
    pub fn store(&self, global: &Global) -> Result<StoreHandle, Failure> {
        let opened = self.block_on(self.helve.open_store(global.store.as_deref()));
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

/// Leaves no program behind when this process is told to end by someone who does not wait for it to tidy up.
#[cfg(unix)]
async fn end_with_programs() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminated), Ok(mut hung_up)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else { return };
    let status = tokio::select! {
        _ = terminated.recv() => failure::TERMINATED,
        _ = hung_up.recv() => failure::HUNG_UP,
    };
    end(status);
}

#[cfg(not(unix))]
async fn end_with_programs() {}

/// Waits for something, unless somebody presses Ctrl-C meanwhile.
pub async fn unless_interrupted<T>(work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => end(failure::INTERRUPTED),
    }
}

fn end(status: u8) -> ! {
    helve::internal::end_programs();
    std::process::exit(status.into())
}
