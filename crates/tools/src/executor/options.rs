//! The options of an executor.

use std::sync::Arc;
use std::time::Duration;

#[cfg(doc)]
use helve_core::CallContext;
use helve_core::{DynLayer, Extensions, Policy, Redactor};

use crate::durable::StoreHandle;

/// Options of an executor.
#[derive(Clone, helve_core::Setters)]
pub struct ExecutorOptions {
    /// The operator's permission rules.
    pub policy: Policy,
    /// The redactor that removes secrets from outcomes, events and logs.
    pub redactor: Redactor,
    /// Whether the store contains the redactor's secrets in plain text. By default it contains placeholders, which are filled in when a
    /// call runs or a run is resumed.
    pub store_secrets: bool,
    /// Maximum number of concurrent calls.
    pub concurrency: usize,
    /// Maximum number of calls that wait for a free slot; further calls fail with `rate_limited`.
    pub waiting: usize,
    /// Maximum size of all cached results, in bytes.
    pub cache_bytes: u64,
    /// How long a cancelled tool may clean up before it is dropped.
    pub grace: Duration,
    /// The store for background calls and approval requests. Without a store, background calls fail.
    pub store: Option<StoreHandle>,
    /// Custom layers, outermost first. They run inside the cache and outside the retries, so they only see calls that run.
    pub layers: Vec<Arc<dyn DynLayer>>,
    /// Values for the tools of all calls, such as a database pool. Tools read them with [`CallContext::extension`].
    pub extensions: Extensions,
}

impl ExecutorOptions {
    /// Adds a layer inside the existing ones.
    #[must_use]
    pub fn layer(mut self, layer: impl DynLayer) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            redactor: Redactor::default(),
            store_secrets: false,
            concurrency: 64,
            waiting: 1024,
            cache_bytes: 64 << 20,
            grace: Duration::from_secs(1),
            store: None,
            layers: Vec::new(),
            extensions: Extensions::default(),
        }
    }
}
