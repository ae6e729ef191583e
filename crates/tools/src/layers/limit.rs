//! How many calls run at once: of all tools, and of one. The waiting line is bounded too.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynLayer, ErrorKind, Next, Output, ToolCall, ToolError};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::catalogue::{Entry, SourceKey};

/// A tool and its limit, whichever entry it has at the moment.
type ToolKey = (SourceKey, Arc<str>, usize);

/// The places of an executor, shared by all its calls.
pub(crate) struct Limits {
    all: Arc<Line>,
    waiting: usize,
    /// The lines of single tools; they outlive entries that are made anew, as long as a call uses them.
    by_tool: Mutex<HashMap<ToolKey, Weak<Line>>>,
}

/// Some places, and those who wait for one.
struct Line {
    places: Semaphore,
    waiting: AtomicUsize,
    most_waiting: usize,
}

impl Limits {
    pub(crate) fn new(concurrency: usize, waiting: usize) -> Self {
        Self { all: Line::new(concurrency, waiting), waiting, by_tool: Mutex::default() }
    }

    fn of_tool(&self, entry: &Entry) -> Option<Arc<Line>> {
        let places = entry.spec().rules().concurrency?.get() as usize;
        let mut lines = self.by_tool.lock();
        lines.retain(|_, line| line.strong_count() > 0);
        let key = (entry.source_key().clone(), entry.name().clone(), places);
        if let Some(line) = lines.get(&key).and_then(Weak::upgrade) {
            return Some(line);
        }
        let line = Line::new(places, self.waiting);
        lines.insert(key, Arc::downgrade(&line));
        Some(line)
    }
}

impl Line {
    fn new(places: usize, most_waiting: usize) -> Arc<Self> {
        Arc::new(Self { places: Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)), waiting: AtomicUsize::new(0), most_waiting })
    }

    async fn enter(&self, cx: &CallContext) -> Result<SemaphorePermit<'_>, ToolError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let _waiting = Waiting::join(self)?;
        tokio::select! {
            place = self.places.acquire() => place.map_err(|_| ToolError::cancelled()),
            () = cx.cancelled() => Err(ToolError::cancelled()),
        }
    }
}

/// A place in the waiting line, given up when dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn join(line: &'a Line) -> Result<Self, ToolError> {
        let waiting = Self(&line.waiting);
        if line.waiting.fetch_add(1, Ordering::Relaxed) >= line.most_waiting {
            return Err(ToolError::new(ErrorKind::RateLimited, "too many calls are waiting already"));
        }
        Ok(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets a call run when there is a place for it.
pub(crate) struct Limit {
    all: Arc<Line>,
    of_tool: Option<Arc<Line>>,
}

impl Limit {
    pub(crate) fn layer(limits: &Limits, entry: &Entry) -> Arc<dyn DynLayer> {
        Arc::new(Self { all: limits.all.clone(), of_tool: limits.of_tool(entry) })
    }
}

impl DynLayer for Limit {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            // The tool's own line first: a slow tool must not hold places that others could use.
            let _own_place = match &self.of_tool {
                Some(line) => Some(line.enter(cx).await?),
                None => None,
            };
            let _place = self.all.enter(cx).await?;
            next.run(call, cx).await
        })
    }
}
