//! Limits how many calls run concurrently, in total and per tool, and how many calls wait.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynLayer, ErrorKind, Next, Output, ToolCall, ToolError};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::catalogue::{Entry, SourceKey};

/// The key of a tool and its limit. It stays the same if the entry is rebuilt.
type ToolKey = (SourceKey, Arc<str>, usize);

/// The limits of an executor, shared by all its calls.
pub(crate) struct ConcurrencyLimits {
    all: Arc<Slots>,
    waiting: usize,
    /// The slots of single tools. Slots survive a rebuilt entry while a call uses them.
    by_tool: Mutex<HashMap<ToolKey, Weak<Slots>>>,
}

/// Slots for running and waiting calls.
struct Slots {
    running: Semaphore,
    waiting: Semaphore,
}

impl ConcurrencyLimits {
    pub(crate) fn new(concurrency: usize, waiting: usize) -> Self {
        Self { all: Slots::new(concurrency, waiting), waiting, by_tool: Mutex::default() }
    }

    fn of_tool(&self, entry: &Entry) -> Option<Arc<Slots>> {
        let concurrency = entry.spec().rules().concurrency?.get() as usize;
        let mut by_tool = self.by_tool.lock();
        by_tool.retain(|_, slots| slots.strong_count() > 0);
        let key = (entry.source_key().clone(), entry.name().clone(), concurrency);
        if let Some(slots) = by_tool.get(&key).and_then(Weak::upgrade) {
            return Some(slots);
        }
        let slots = Slots::new(concurrency, self.waiting);
        by_tool.insert(key, Arc::downgrade(&slots));
        Some(slots)
    }
}

impl Slots {
    fn new(running: usize, waiting: usize) -> Arc<Self> {
        let running = Semaphore::new(running.clamp(1, Semaphore::MAX_PERMITS));
        Arc::new(Self { running, waiting: Semaphore::new(waiting.min(Semaphore::MAX_PERMITS)) })
    }

    async fn enter(&self, cx: &CallContext) -> Result<SemaphorePermit<'_>, ToolError> {
        if let Ok(slot) = self.running.try_acquire() {
            return Ok(slot);
        }
        let full = |_| ToolError::new(ErrorKind::RateLimited, "too many calls are waiting already");
        let _waiting = self.waiting.try_acquire().map_err(full)?;
        tokio::select! {
            slot = self.running.acquire() => slot.map_err(|_| ToolError::cancelled()),
            () = cx.cancelled() => Err(ToolError::cancelled()),
        }
    }
}

/// Runs a call when a slot is free.
pub(crate) struct Limit {
    all: Arc<Slots>,
    of_tool: Option<Arc<Slots>>,
}

impl Limit {
    pub(crate) fn layer(limits: &ConcurrencyLimits, entry: &Entry) -> Arc<dyn DynLayer> {
        Arc::new(Self { all: limits.all.clone(), of_tool: limits.of_tool(entry) })
    }
}

impl DynLayer for Limit {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            // Take the tool's own slot first, because a slow tool must not occupy slots that other tools could use.
            let _tool_slot = match &self.of_tool {
                Some(slots) => Some(slots.enter(cx).await?),
                None => None,
            };
            let _slot = self.all.enter(cx).await?;
            next.run(call, cx).await
        })
    }
}
