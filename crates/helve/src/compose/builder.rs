//! Putting a Helve together in a program: its tools, rules, layers, store and workers.

use std::sync::Arc;

use helve_core::{CancellationToken, DynLayer, DynTool, IntoTool, IntoTools, PermissionRule, Redactor, SpecError, ToolSource};
use helve_tools::{ExecutorOptions, StoreHandle};

use super::Helve;

/// Puts a [`Helve`] together.
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

/// Why a Helve cannot be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A tool's name, description or schema cannot be used.
    #[error(transparent)]
    Tool(#[from] SpecError),
    /// The store cannot be opened.
    #[cfg(feature = "store")]
    #[error("{error}: {}", error.hint)]
    Store {
        /// Why, and what to do.
        #[from]
        error: super::NoStore,
    },
    /// Workers need a store to take calls from.
    #[error("workers need a store: name one with `store`, such as `sqlite:helve.db`")]
    NoStore,
}

impl std::fmt::Debug for HelveBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HelveBuilder").field("options", &self.options).field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl Helve {
    /// Puts a Helve together from tools, rules, layers and a store.
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

    /// Adds several tools: the methods of a value with `#[tools]`, or a list.
    pub fn tools<Kind>(mut self, tools: impl IntoTools<Kind>) -> Self {
        self.tools.push(tools.into_tools());
        self
    }

    /// Adds a source of tools that come and go.
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Adds the tools that come with Helve, behind your own.
    #[cfg(feature = "builtins")]
    pub fn builtins(self) -> Self {
        self.source(Helve::builtins())
    }

    /// Adds a permission rule. Their order has no meaning.
    pub fn rule(mut self, rule: PermissionRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds a layer around calls that run, inside those that were added before.
    pub fn layer(mut self, layer: impl DynLayer) -> Self {
        self.options = self.options.layer(layer);
        self
    }

    /// Gives a value to the tools and layers of all calls, such as a database pool: [`CallContext::extension`](helve_core::CallContext::extension).
    pub fn extension<T: std::any::Any + Send + Sync>(mut self, value: T) -> Self {
        self.options.extensions.insert(value);
        self
    }

    /// Knows secrets that must never show, besides those of the environment.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.options.redactor = redactor;
        self
    }

    /// Stores runs, background calls and requests at this address: `sqlite:FILE` or `postgres://…`.
    #[cfg(feature = "store")]
    pub fn store(mut self, address: impl Into<String>) -> Self {
        self.store = Some(address.into());
        self
    }

    /// Stores them in a store of your own.
    pub fn store_handle(mut self, store: StoreHandle) -> Self {
        self.options.store = Some(store);
        self
    }

    /// Runs so many background calls at once in this process, for as long as the Helve lives.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }

    /// Starts from these options of the executor: limits, cache, layers. Set them first: they take the place of layers, secrets, extensions and a store that were added before.
    pub fn options(mut self, options: ExecutorOptions) -> Self {
        self.options = options;
        self
    }

    /// Puts it together.
    ///
    /// # Errors
    /// Where a tool cannot be used, or the store cannot be opened.
    ///
    /// # Panics
    /// Outside of a tokio runtime, if there are workers.
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
