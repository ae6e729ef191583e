//! Where the parts become a whole: this file and its folder are the only ones that name all concrete types.

#[cfg(feature = "project")]
mod agents;
#[cfg(feature = "store")]
mod approvals;
mod builder;
#[cfg(feature = "project")]
mod capability;
mod debug;
#[cfg(feature = "project")]
mod document;
#[cfg(feature = "project")]
mod folder_tool;
#[cfg(feature = "project")]
mod load;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(all(feature = "project", feature = "models"))]
mod model;
#[cfg(feature = "project")]
mod open;
#[cfg(all(feature = "project", feature = "models", feature = "store"))]
mod open_agent;
#[cfg(feature = "project")]
mod project;
#[cfg(feature = "project")]
mod resolve;
#[cfg(feature = "store")]
mod store;
#[cfg(all(feature = "project", feature = "sqlite"))]
mod takeover;
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
/// Kills all programs that were started here, for a process that is told to end and cannot tidy up.
#[cfg(feature = "mcp")]
pub use helve_process::end_all as end_programs;
#[cfg(feature = "project")]
pub use helve_project::{Capability, Change, Diagnostic, FieldChange, OnResult, Severity, StateError, StateFolder, Trust, read_yaml};
#[cfg(feature = "postgres")]
pub use helve_store::PostgresStore;
#[cfg(feature = "sqlite")]
pub use helve_store::{Durability, SqliteStore};

#[cfg(feature = "project")]
pub use self::agents::NoAgent;
#[cfg(feature = "store")]
pub use self::approvals::DecideError;
pub use self::builder::{BuildError, HelveBuilder};
#[cfg(feature = "mcp")]
pub use self::mcp::McpServing;
#[cfg(all(feature = "project", feature = "models"))]
pub use self::model::{ChosenModel, ModelChoice, NoModel};
#[cfg(feature = "project")]
pub use self::open::OpenOptions;
#[cfg(all(feature = "project", feature = "models", feature = "store"))]
pub use self::open_agent::{AgentChoice, OpenAgent, OpenAgentError};
#[cfg(feature = "project")]
pub use self::project::{ProjectReport, TrustChanges, file_schemas};
#[cfg(feature = "project")]
pub use self::resolve::ProjectAgent;
#[cfg(feature = "store")]
pub use self::store::NoStore;
#[cfg(all(feature = "project", feature = "models", feature = "store"))]
pub use self::worker::{ProjectWorker, Worked};

/// A catalogue and an executor that belong together, with the project they serve. Cheap to clone; clones share.
#[derive(Clone)]
pub struct Helve {
    catalogue: Catalogue,
    executor: Executor,
    redactor: Redactor,
    #[cfg(feature = "project")]
    project: Option<Arc<project::Project>>,
    #[cfg(all(feature = "project", feature = "store"))]
    telling: webhook::Telling,
    /// Where the store is, once it is open.
    #[cfg(feature = "store")]
    opened: Arc<std::sync::OnceLock<store::Place>>,
    /// Stops the workers that were started with it.
    workers: Option<Arc<tokio_util::sync::DropGuard>>,
}

impl Helve {
    /// Helve without tools, with default limits. [`Helve::builder`] has all there is to choose.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(ExecutorOptions::default())
    }

    /// Helve with limits, rules and layers of your own. Secrets of the environment are always kept out of sight.
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
            telling: webhook::Telling::default(),
            #[cfg(feature = "store")]
            opened: Arc::default(),
            workers: None,
        }
    }

    #[cfg(feature = "builtins")]
    fn builtins() -> Arc<helve_core::ListSource> {
        Arc::new(helve_core::ListSource::new("builtin", helve_builtins::tools()))
    }

    /// All tools.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Runs calls.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Knows the secrets that must never show.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Every tool that everyone sees.
    #[must_use]
    pub fn toolkit(&self) -> Toolkit {
        self.catalogue.everything(&View::default())
    }

    /// Calls one tool through all layers, for the program itself. A call that must be approved comes back as `waiting`.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.executor.execute(&self.toolkit(), ToolCall::new(tool, arguments), &CallContext::default()).await
    }

    /// An agent with all tools, and the store if there is one.
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

    /// Stores a request for later, and notifies the project's webhook. Once a person approves it, in any process, a worker makes the call.
    ///
    /// # Errors
    /// Where the tool is gone, or the request cannot be stored.
    pub async fn ask_later(&self, request: ApprovalRequest) -> Result<Outcome, ToolError> {
        let outcome = self.executor.ask_later(&self.toolkit(), request).await?;
        #[cfg(all(feature = "project", feature = "store"))]
        self.told().await;
        Ok(outcome)
    }

    /// Runs so many background calls of a store at once, and nothing else.
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
