//! The cache of results. The executor looks up a call before it runs, and equal concurrent calls run once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use helve_core::json::canonical;
use helve_core::{CacheRule, CallContext, Caller, Digest, DynLayer, ErrorKind, Next, Output, ToolCall, ToolError};
use parking_lot::Mutex;
use quick_cache::Weighter;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::catalogue::{Entry, SourceKey};

/// The key of a cached result: the tool, its definition, the arguments, and the caller if the cache rule requires it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    source: SourceKey,
    spec: Digest,
    arguments: Box<str>,
    caller: Option<Caller>,
}

impl CacheKey {
    /// Creates the key of a call. Arguments that differ only in key order or number format are equal.
    #[must_use]
    pub fn new(source: &SourceKey, spec: Digest, arguments: &Value, caller: Option<&Caller>) -> Self {
        // All runs of a conversation share results.
        let caller = caller.map(|caller| caller.clone().run(None));
        Self { source: source.clone(), spec, arguments: canonical(arguments).into(), caller }
    }

    fn of(entry: &Entry, rule: CacheRule, call: &ToolCall, cx: &CallContext) -> Self {
        Self::new(entry.source_key(), entry.spec().hash(), &call.arguments, rule.per_caller.then(|| cx.caller()))
    }
}

/// Receives the result of a running call; `None` until the call ends.
type RunningResult = watch::Receiver<Option<Result<Output, ToolError>>>;

/// Cached results, limited in size.
pub(crate) struct Cache {
    results: quick_cache::sync::Cache<CacheKey, CachedResult, ByBytes>,
    running: Mutex<HashMap<CacheKey, RunningResult>>,
}

#[derive(Clone)]
struct CachedResult {
    output: Arc<Output>,
    since: Instant,
    ttl: Duration,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<CacheKey, CachedResult> for ByBytes {
    fn weight(&self, key: &CacheKey, cached: &CachedResult) -> u64 {
        let output = &cached.output;
        let metadata: usize = output.metadata.iter().map(|(key, value)| key.len() + bytes_of(value)).sum();
        (key.arguments.len() + output.text.len() + bytes_of(&output.data) + metadata + 256) as u64
    }
}

/// Returns the approximate memory of a value, in bytes.
fn bytes_of(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields.iter().map(|(key, field)| key.len() + 48 + bytes_of(field)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    content + size_of::<Value>()
}

impl Cache {
    pub(crate) fn new(bytes: u64) -> Self {
        let items = usize::try_from(bytes / 1024).unwrap_or(usize::MAX).max(16);
        Self { results: quick_cache::sync::Cache::with_weighter(items, bytes, ByBytes), running: Mutex::default() }
    }

    /// Returns the cached result of a call, if there is one that has not expired.
    pub(crate) fn lookup(&self, entry: &Entry, call: &ToolCall, cx: &CallContext) -> Option<Output> {
        let rule = entry.spec().rules().cache?;
        self.fresh(&CacheKey::of(entry, rule, call, cx))
    }

    /// Returns the layer that fills the cache, or `None` if the tool's results are not cached.
    pub(crate) fn layer(cache: &Arc<Self>, entry: &Entry) -> Option<Arc<dyn DynLayer>> {
        let rule = entry.spec().rules().cache?;
        Some(Arc::new(Fill { cache: cache.clone(), rule, source: entry.source_key().clone() }))
    }

    fn fresh(&self, key: &CacheKey) -> Option<Output> {
        let cached = self.results.get(key)?;
        if cached.since.elapsed() < cached.ttl {
            return Some(Output::clone(&cached.output).with_metadata("cached", json!(true)));
        }
        self.results.remove(key);
        None
    }

    /// Returns a leader if this caller must run the call. Otherwise, returns the receiver of the result that another caller's call will
    /// have.
    fn lead_or_follow(self: &Arc<Self>, key: &CacheKey) -> Result<Leader, RunningResult> {
        let mut running = self.running.lock();
        if let Some(result) = running.get(key) {
            return Err(result.clone());
        }
        let (sender, result) = watch::channel(None);
        running.insert(key.clone(), result);
        Ok(Leader { cache: self.clone(), key: key.clone(), sender })
    }
}

/// Runs a call for all callers that wait for it. If the leader is dropped without a result, the next caller becomes the leader.
struct Leader {
    cache: Arc<Cache>,
    key: CacheKey,
    sender: watch::Sender<Option<Result<Output, ToolError>>>,
}

impl Leader {
    fn publish(self, result: &Result<Output, ToolError>, ttl: Duration) {
        if let Ok(output) = result {
            self.cache.results.insert(self.key.clone(), CachedResult { output: Arc::new(output.clone()), since: Instant::now(), ttl });
        }
        // A cancellation or an input request concerns only this caller.
        if !matches!(result, Err(error) if error.kind() == ErrorKind::Cancelled || error.input().is_some()) {
            self.sender.send_replace(Some(result.clone()));
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.cache.running.lock().remove(&self.key);
    }
}

/// Runs equal concurrent calls once, and caches the result.
struct Fill {
    cache: Arc<Cache>,
    rule: CacheRule,
    source: SourceKey,
}

impl DynLayer for Fill {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            if cx.is_particular() {
                return next.run(call, cx).await;
            }
            let caller = self.rule.per_caller.then(|| cx.caller());
            let key = CacheKey::new(&self.source, next.tool().spec().hash(), &call.arguments, caller);
            loop {
                if let Some(output) = self.cache.fresh(&key) {
                    return Ok(output);
                }
                match self.cache.lead_or_follow(&key) {
                    Ok(leader) => {
                        let result = next.run(call, cx).await;
                        leader.publish(&result, self.rule.ttl);
                        return result;
                    }
                    Err(mut result) => {
                        let shared = tokio::select! {
                            shared = result.wait_for(Option::is_some) => shared.ok().and_then(|shared| shared.clone()),
                            () = cx.cancelled() => return Err(ToolError::cancelled()),
                        };
                        if let Some(result) = shared {
                            return result.map(|output| output.with_metadata("cached", json!(true)));
                        }
                    }
                }
            }
        })
    }
}
