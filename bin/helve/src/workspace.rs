//! The workspace of a command: the open project, and the async runtime of its sources.

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

/// Time that a listing waits for servers that are still connecting.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that a call waits for the server that may have its tool.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The open project, and the async runtime of its sources.
pub struct Workspace {
    helve: Helve,
    /// `None` only while the workspace is dropped.
    runtime: Option<Runtime>,
}

impl Workspace {
    /// Opens a project folder and connects its servers.
    pub fn open(folder: &Path, redactor: &Redactor) -> Result<Self, Failure> {
        Self::open_with(folder, redactor, true)
    }

    /// Opens a project folder without connecting its servers.
    pub fn open_offline(folder: &Path, redactor: &Redactor) -> Result<Self, Failure> {
        Self::open_with(folder, redactor, false)
    }

    fn open_with(folder: &Path, redactor: &Redactor, servers: bool) -> Result<Self, Failure> {
        let runtime = new_runtime()?;
        let helve = {
            let _inside = runtime.enter();
            OpenOptions::new().redactor(redactor.clone()).connect(servers).builtins(true).open(folder).map_err(|error| {
                Failure::new("not_found", format_args!("cannot open the folder {}: {error}", folder.display()))
                    .hint("name the project folder with -C, or create a project with `helve init DIR`")
            })?
        };
        runtime.spawn(kill_programs_on_signal());
        Ok(Self { helve, runtime: Some(runtime) })
    }

    /// Returns the open project.
    pub fn helve(&self) -> &Helve {
        &self.helve
    }

    /// Returns the project's report, after waiting for servers that are still connecting.
    pub fn report(&self) -> Arc<ProjectReport> {
        self.settle();
        self.helve.project().unwrap_or_default()
    }

    /// Returns the project's errors and warnings.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.report().diagnostics.clone()
    }

    /// Waits for servers that are still connecting, up to a timeout.
    pub fn settle(&self) {
        let catalogue = self.helve.catalogue();
        let _ = self.block_on(unless_interrupted(async { tokio::time::timeout(LIST_TIMEOUT, catalogue.settled()).await }));
    }

    /// Waits until `tool` is available, if a server that is still connecting may have it, up to a timeout.
    pub fn settle_for(&self, tool: &str) {
        let (catalogue, view) = (self.helve.catalogue(), View::default());
        let timeout = if catalogue.may_appear(tool) { CALL_TIMEOUT } else { LIST_TIMEOUT };
        let found = async {
            let mut snapshot = catalogue.snapshot(&view);
            while snapshot.get(tool).is_none() {
                tokio::select! {
                    next = catalogue.next(&view, &snapshot) => snapshot = next,
                    () = catalogue.settled() => return,
                }
            }
        };
        let _ = self.block_on(unless_interrupted(async { tokio::time::timeout(timeout, found).await }));
    }

    /// Opens the store of the command line or the project.
    pub fn store(&self, global: &Global) -> Result<StoreHandle, Failure> {
        Ok(self.block_on(self.helve.open_store(global.store.as_deref()))?)
    }

    /// Runs a future to completion.
    pub fn block_on<F: Future>(&self, work: F) -> F::Output {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            None => unreachable!("the runtime lives as long as the workspace"),
        }
    }
}

/// Creates the async runtime of one command.
pub fn new_runtime() -> Result<Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| Failure::new("failed", format_args!("cannot start the async runtime: {error}")))
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A blocking tool that ignores its cancellation must not keep the process alive.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Kills the programs that this process started when it gets SIGTERM or SIGHUP.
#[cfg(unix)]
async fn kill_programs_on_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminated), Ok(mut hung_up)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else { return };
    let status = tokio::select! {
        _ = terminated.recv() => failure::TERMINATED,
        _ = hung_up.recv() => failure::HUNG_UP,
    };
    end(status);
}

#[cfg(not(unix))]
async fn kill_programs_on_signal() {}

/// Runs a future to completion. Ctrl-C ends the process.
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
