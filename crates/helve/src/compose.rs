//! Where the parts become a whole: the only file that names all concrete types.

use helve_core::{CallContext, Outcome, Redactor, ToolCall};
use helve_tools::{Catalogue, Executor, ExecutorOptions, Toolkit, View};
use serde_json::Value;

/// A catalogue and an executor that belong together.
#[derive(Clone)]
pub struct Helve {
    catalogue: Catalogue,
    executor: Executor,
    redactor: Redactor,
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
        let redactor = options.redactor.clone();
        redactor.add_environment();
        let catalogue = Catalogue::new();
        #[cfg(feature = "builtins")]
        catalogue.register_all(helve_builtins::tools());
        Self { catalogue, executor: Executor::new(options), redactor }
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
