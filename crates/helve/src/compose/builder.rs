//! Builds a [`Helve`] from tools, rules, layers, a store and workers.

use std::sync::Arc;

use helve_core::{CancellationToken, DynLayer, DynTool, IntoTool, IntoTools, PermissionRule, Redactor, SpecError, ToolSource};
use helve_tools::{ExecutorOptions, StoreHandle};

use super::Helve;

/// Builds a [`Helve`].
///
/// ```
/// use helve::prelude::*;
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let helve = Helve::builder().tool(add::tool()).rule(PermissionRule::for_tool("add", Permission::Auto)).build().await?;
/// assert_eq!(helve.call("add", json!({"a": 1, "b": 2})).await.text(), "3");
/// # Ok(()) }
/// ```
#[must_use = "a builder does nothing before `build`"]
#[derive(Default)]
pub struct HelveBuilder {
    tools: Vec<Result<Vec<Arc<dyn DynTool>>, SpecError>>,
    sources: Vec<Arc<dyn ToolSource>>,
    rules: Vec<PermissionRule>,
    options: ExecutorOptions,
    #[cfg(feature = "store")]
    store: Option<String>,
    workers: usize,
}

/// Why a [`Helve`] cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A tool's name, description or schema is invalid.
    #[error(transparent)]
    Tool(#[from] SpecError),
    /// The store cannot be opened.
    #[cfg(feature = "store")]
    #[error("{error}: {}", error.hint)]
    Store {
        /// The error, with a hint.
        #[from]
        error: super::OpenStoreError,
    },
    /// Workers are configured, but no store from which they could take calls.
    #[error("workers need a store: set one with `store`, such as `sqlite:helve.db`")]
    NoStore,
}

impl std::fmt::Debug for HelveBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HelveBuilder").field("options", &self.options).field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl Helve {
    /// Creates a builder for tools, rules, layers, a store and workers.
    pub fn builder() -> HelveBuilder {
        HelveBuilder::default()
    }
}

impl HelveBuilder {
    /// Adds a tool.
    pub fn tool<Kind>(mut self, tool: impl IntoTool<Kind>) -> Self {
        self.tools.push(tool.into_tool().map(|tool| vec![tool]));
        self
    }

    /// Adds several tools: a value whose `impl` block has `#[tools]`, or a list of tools.
    pub fn tools<Kind>(mut self, tools: impl IntoTools<Kind>) -> Self {
        self.tools.push(tools.into_tools());
        self
    }

    /// Adds a source of tools. The tools may change at any time.
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Adds Helve's own tools, such as `calculate`. Your tools take precedence over tools of the same name.
    #[cfg(feature = "builtins")]
    pub fn builtins(self) -> Self {
        self.source(Helve::builtins())
    }

    /// Adds a permission rule. The order of rules does not matter: the strictest rule that matches wins.
    pub fn rule(mut self, rule: PermissionRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds a layer around running calls, inside the layers that were added before.
    pub fn layer(mut self, layer: impl DynLayer) -> Self {
        self.options = self.options.layer(layer);
        self
    }

    /// Shares a value, such as a database pool, with all tools and layers, which read it with
    /// [`CallContext::extension`](helve_core::CallContext::extension).
    pub fn extension<T: std::any::Any + Send + Sync>(mut self, value: T) -> Self {
        self.options.extensions.insert(value);
        self
    }

    /// Sets the redactor. [`build`](Self::build) adds the secrets in environment variables to it.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.options.redactor = redactor;
        self
    }

    /// Stores runs, background calls and approvals at this address: `sqlite:FILE` or `postgres://…`.
    #[cfg(feature = "store")]
    pub fn store(mut self, address: impl Into<String>) -> Self {
        self.store = Some(address.into());
        self
    }

    /// Uses a store that is already open, such as your own implementation.
    pub fn store_handle(mut self, store: StoreHandle) -> Self {
        self.options.store = Some(store);
        self
    }

    /// Runs up to `count` background calls at once in this process, until the last clone of the [`Helve`] and its agents are dropped. These
    /// workers do not resume runs.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }

    /// Replaces the options of the executor, such as limits, cache and layers. Call this method first: it discards layers, redactor,
    /// extensions and store that were set before.
    pub fn options(mut self, options: ExecutorOptions) -> Self {
        self.options = options;
        self
    }

    /// Builds the [`Helve`].
    ///
    /// # Errors
    /// Returns an error if a tool is invalid, or the store cannot be opened.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime if there are workers.
    pub async fn build(mut self) -> Result<Helve, BuildError> {
        for rule in self.rules {
            self.options.policy = self.options.policy.with_rule(rule);
        }
        let mut helve = Helve::with_options(self.options);
        for tools in self.tools {
            helve.catalogue.register_all(tools?)?;
        }
        self.sources.into_iter().for_each(|source| helve.catalogue.add_source(source));
        #[cfg(feature = "store")]
        if let Some(address) = &self.store {
            helve.open_store(Some(address)).await?;
        }
        if self.workers > 0 {
            let store = helve.executor.store().ok_or(BuildError::NoStore)?;
            let stop = CancellationToken::new();
            tokio::spawn(helve.task_worker(store, self.workers).run(stop.clone()));
            helve.workers = Some(Arc::new(stop.drop_guard()));
        }
        Ok(helve)
    }
}
