//! Where the parts become a whole: this file and its folder are the only ones that name all concrete types.

#[cfg(feature = "project")]
mod agents;
#[cfg(feature = "project")]
mod capability;
mod debug;
#[cfg(feature = "project")]
mod document;
#[cfg(feature = "project")]
mod eras;
#[cfg(feature = "project")]
mod folder_tool;
#[cfg(feature = "project")]
mod load;
#[cfg(feature = "project")]
mod logins;
#[cfg(feature = "project")]
mod mcp_service;
#[cfg(all(feature = "project", feature = "models"))]
mod model;
#[cfg(feature = "project")]
mod pins;
#[cfg(feature = "project")]
mod project;
#[cfg(feature = "store")]
mod record;
#[cfg(feature = "project")]
mod resolve;
#[cfg(feature = "project")]
mod servers;
#[cfg(all(feature = "project", feature = "store"))]
mod takeover;
#[cfg(all(feature = "project", feature = "store"))]
mod webhook;

use helve_core::{CallContext, Outcome, Redactor, ToolCall};
use helve_tools::{Catalogue, Executor, ExecutorOptions, Toolkit, View};
use serde_json::Value;

/// Servers of the Model Context Protocol.
#[cfg(feature = "project")]
pub use helve_mcp as mcp;
/// Language models over HTTP.
#[cfg(feature = "models")]
pub use helve_models as models;
/// Kills all programs that were started here, for a process that is told to end and cannot tidy up.
#[cfg(feature = "project")]
pub use helve_process::end_all as end_programs;
#[cfg(feature = "project")]
pub use helve_project::{Capability, Change, Diagnostic, FieldChange, OnResult, Severity, StateError, StateFolder, Trust, read_yaml};

#[cfg(feature = "project")]
pub use self::mcp_service::McpServing;
#[cfg(all(feature = "project", feature = "models"))]
pub use self::model::{ChosenModel, ModelChoice, NoModel};
#[cfg(feature = "project")]
pub use self::project::{ProjectReport, TrustChanges, file_schemas};
#[cfg(feature = "store")]
pub use self::record::NoRecord;
#[cfg(feature = "project")]
pub use self::resolve::ProjectAgent;

/// A catalogue and an executor that belong together, with the project they serve. Cheap to clone; clones share.
#[derive(Clone)]
pub struct Helve {
    catalogue: Catalogue,
    executor: Executor,
    redactor: Redactor,
    #[cfg(feature = "project")]
    project: Option<std::sync::Arc<project::Project>>,
    #[cfg(all(feature = "project", feature = "store"))]
    telling: webhook::Telling,
}

impl Helve {
    /// Helve with its built-in tools, where the feature `builtins` is on, and default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(ExecutorOptions::default())
    }

    /// Helve with limits, rules and layers of your own. Secrets of the environment are always kept out of sight.
    #[must_use]
    pub fn with_options(options: ExecutorOptions) -> Self {
        let helve = Self::bare(options);
        #[cfg(feature = "builtins")]
        helve.catalogue.add_source(Self::builtins());
        helve
    }

    /// Helve without any tool.
    fn bare(options: ExecutorOptions) -> Self {
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
        }
    }

    #[cfg(feature = "builtins")]
    fn builtins() -> std::sync::Arc<helve_core::ListSource> {
        std::sync::Arc::new(helve_core::ListSource::new("builtin", helve_builtins::tools()))
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
        Toolkit::everything(&self.catalogue.snapshot(&View::default()))
    }

    /// Calls one tool through all layers, on nobody's behalf.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.executor.execute(&self.toolkit(), ToolCall::new(tool, arguments), &CallContext::default()).await
    }
}

impl Default for Helve {
    fn default() -> Self {
        Self::new()
    }
}
