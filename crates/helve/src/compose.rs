//! Composes the crates into a [`Helve`]. Only this file and its folder know all concrete types.

#[cfg(feature = "project")]
mod agents;
#[cfg(feature = "store")]
mod approvals;
mod builder;
mod debug;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
#[cfg(all(feature = "project", feature = "models"))]
mod model;
#[cfg(feature = "project")]
mod project;
#[cfg(feature = "store")]
mod store;
#[cfg(all(feature = "project", feature = "store"))]
mod webhook;
#[cfg(all(feature = "project", feature = "models", feature = "store"))]
mod worker;

use std::sync::Arc;

use helve_agent::Agent;
use helve_core::{ApprovalRequest, CallContext, DynModel, Outcome, Redactor, ToolCall, ToolError};
use helve_tools::{Catalogue, Executor, ExecutorOptions, StoreHandle, Toolkit, View, Worker};
use serde_json::Value;

#[cfg(feature = "models")]
pub use helve_fetch::Fetch;
/// Language models over HTTP.
#[cfg(feature = "models")]
pub use helve_models as models;
/// Kills all programs that this process started. For a process that a signal ends.
#[cfg(feature = "mcp")]
pub use helve_process::end_all as end_programs;
#[cfg(feature = "project")]
pub use helve_project::{
    Capability, CapabilityChange, Diagnostic, FieldChange, OnResult, Severity, StateError, StateFolder, Trust, read_yaml,
};
#[cfg(feature = "postgres")]
pub use helve_store::PostgresStore;
#[cfg(feature = "sqlite")]
pub use helve_store::{Durability, SqliteStore};

#[cfg(feature = "project")]
pub use self::agents::ChooseAgentError;
#[cfg(all(feature = "project", feature = "models", feature = "store"))]
pub use self::agents::{AgentChoice, OpenAgent, OpenAgentError};
#[cfg(feature = "store")]
pub use self::approvals::DecideError;
pub use self::builder::{BuildError, HelveBuilder};
#[cfg(all(feature = "project", feature = "models"))]
pub use self::model::{ChooseModelError, ChosenModel, ModelChoice};
#[cfg(feature = "project")]
pub use self::project::{OpenOptions, ProjectAgent, ProjectReport, TrustChanges, file_schemas};
#[cfg(feature = "store")]
pub use self::store::OpenStoreError;
#[cfg(all(feature = "project", feature = "models", feature = "store"))]
pub use self::worker::{ProjectWorker, WorkSummary};

/// A tool runtime: a catalogue of tools and the executor that runs their calls, with an optional store and project folder.
///
/// Create a runtime with [`Helve::builder`], or with `Helve::open` (feature `project`) from a project folder. A `Helve` is cheap
/// to clone; clones share everything.
#[derive(Clone)]
pub struct Helve {
    catalogue: Catalogue,
    executor: Executor,
    redactor: Redactor,
    #[cfg(feature = "project")]
    project: Option<Arc<project::Project>>,
    #[cfg(all(feature = "project", feature = "store"))]
    notifications: webhook::PendingNotifications,
    /// The address of the open store; unset if no store is open.
    #[cfg(feature = "store")]
    opened: Arc<std::sync::OnceLock<store::StoreAddress>>,
    /// Stops the builder's workers when the last clone is dropped.
    workers: Option<Arc<tokio_util::sync::DropGuard>>,
}

impl Helve {
    /// Creates a runtime without tools, with default limits. [`Helve::builder`] offers all options.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(ExecutorOptions::default())
    }

    /// Creates a runtime without tools, with these limits, rules and layers. The redactor also learns the secrets in environment variables.
    #[must_use]
    pub fn with_options(options: ExecutorOptions) -> Self {
        let redactor = options.redactor.clone();
        redactor.add_environment();
        Self {
            catalogue: Catalogue::new(),
            executor: Executor::new(options),
            redactor,
            #[cfg(feature = "project")]
            project: None,
            #[cfg(all(feature = "project", feature = "store"))]
            notifications: webhook::PendingNotifications::default(),
            #[cfg(feature = "store")]
            opened: Arc::default(),
            workers: None,
        }
    }

    #[cfg(feature = "builtins")]
    fn builtins() -> Arc<helve_core::ListSource> {
        Arc::new(helve_core::ListSource::new("builtin", helve_builtins::tools()))
    }

    /// Returns the catalogue of all tools.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Returns the executor, which runs calls.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Returns the redactor, which replaces known secrets.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns a toolkit with all tools of global sources.
    #[must_use]
    pub fn toolkit(&self) -> Toolkit {
        self.catalogue.everything(&View::default())
    }

    /// Calls one tool through all layers, on behalf of the program. A call that needs approval returns with the status `waiting`.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.executor.execute(&self.toolkit(), ToolCall::new(tool, arguments), &CallContext::default()).await
    }

    /// Creates an agent with all tools. Its runs are stored if a store is open.
    #[must_use]
    pub fn agent(&self, model: impl DynModel) -> Agent {
        let agent = Agent::with_tools(model, self.catalogue.clone(), self.executor.clone(), None).with_workers(self.workers.clone());
        match self.executor.store() {
            None => agent,
            Some(store) => match agent.with_store(store.clone()) {
                Ok(agent) => agent,
                Err(error) => unreachable!("the store is that of the executor: {error}"),
            },
        }
    }

    /// Stores an approval request and notifies the project's webhook. Once a person approves the request, in any process, a worker runs
    /// the call.
    ///
    /// # Errors
    /// Returns an error if the tool no longer exists, or the request cannot be stored.
    pub async fn ask_later(&self, request: ApprovalRequest) -> Result<Outcome, ToolError> {
        let outcome = self.executor.ask_later(&self.toolkit(), request).await?;
        #[cfg(all(feature = "project", feature = "store"))]
        self.flush_webhook().await;
        Ok(outcome)
    }

    /// Creates a worker that runs up to `concurrency` background calls of a store at once. Unlike the worker of `Helve::worker`, it does
    /// not resume runs.
    #[must_use]
    pub fn task_worker(&self, store: &StoreHandle, concurrency: usize) -> Worker {
        Worker::new(store.clone(), self.executor.clone(), self.catalogue.clone(), concurrency)
    }
}

impl Default for Helve {
    fn default() -> Self {
        Self::new()
    }
}
