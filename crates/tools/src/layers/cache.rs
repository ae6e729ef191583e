//! Results that may be kept: looked up before a call runs, and filled in by one caller for all who ask at once.

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

/// What makes two calls the same call: the tool, its definition, the arguments, and the caller where that matters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    source: SourceKey,
    spec: Digest,
    arguments: Box<str>,
    caller: Option<Caller>,
}

impl CacheKey {
    /// The key of a call. Arguments that differ only in order or spelling are the same.
    #[must_use]
    pub fn new(source: &SourceKey, spec: Digest, arguments: &Value, caller: Option<&Caller>) -> Self {
        // Which run of a conversation asks makes no difference to what it may see.
        let caller = caller.map(|caller| caller.clone().run(None));
        Self { source: source.clone(), spec, arguments: canonical(arguments).into(), caller }
    }

    fn of(entry: &Entry, rule: CacheRule, call: &ToolCall, cx: &CallContext) -> Self {
        Self::new(entry.source_key(), entry.spec().hash(), &call.arguments, rule.per_caller.then(|| cx.caller()))
    }
}

/// Where the result of a call that runs now will be told; `None` until then.
type Told = watch::Receiver<Option<Result<Output, ToolError>>>;

/// Kept results, bounded in size; the least used go first.
pub(crate) struct Cache {
    kept: quick_cache::sync::Cache<CacheKey, Kept, ByBytes>,
    running: Mutex<HashMap<CacheKey, Told>>,
}

#[derive(Clone)]
struct Kept {
    output: Arc<Output>,
    since: Instant,
    ttl: Duration,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<CacheKey, Kept> for ByBytes {
    fn weight(&self, key: &CacheKey, kept: &Kept) -> u64 {
        let output = &kept.output;
        let beside: usize = output.metadata.iter().map(|(key, value)| key.len() + bytes_of(value)).sum();
        (key.arguments.len() + output.text.len() + bytes_of(&output.data) + beside + 256) as u64
    }
}

/// About how much memory a value takes.
fn bytes_of(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields.iter().map(|(key, field)| key.len() + 48 + bytes_of(field)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inside + size_of::<Value>()
}

impl Cache {
    pub(crate) fn new(bytes: u64) -> Self {
        let items = usize::try_from(bytes / 1024).unwrap_or(usize::MAX).max(16);
        Self { kept: quick_cache::sync::Cache::with_weighter(items, bytes, ByBytes), running: Mutex::default() }
    }

    /// The kept result of a call, where there is one that is still good.
    pub(crate) fn lookup(&self, entry: &Entry, call: &ToolCall, cx: &CallContext) -> Option<Output> {
        let rule = entry.spec().rules().cache?;
        self.fresh(&CacheKey::of(entry, rule, call, cx))
    }

    /// The layer that fills the cache, for tools that allow it.
    pub(crate) fn layer(cache: &Arc<Self>, entry: &Entry) -> Option<Arc<dyn DynLayer>> {
        let rule = entry.spec().rules().cache?;
        Some(Arc::new(Fill { cache: cache.clone(), rule, source: entry.source_key().clone() }))
    }

    fn fresh(&self, key: &CacheKey) -> Option<Output> {
        let kept = self.kept.get(key)?;
        if kept.since.elapsed() < kept.ttl {
            return Some(Output::clone(&kept.output).with_metadata("cached", json!(true)));
        }
        self.kept.remove(key);
        None
    }

    /// Either the right to run the call for everyone, or the place where someone else will tell the result.
    fn lead_or_follow(self: &Arc<Self>, key: &CacheKey) -> Result<Leader, Told> {
        let mut running = self.running.lock();
        if let Some(result) = running.get(key) {
            return Err(result.clone());
        }
        let (tell, result) = watch::channel(None);
        running.insert(key.clone(), result);
        Ok(Leader { cache: self.clone(), key: key.clone(), tell })
    }
}

/// Whoever runs a call for all who wait for it. Dropped without a result, it lets the next one lead.
struct Leader {
    cache: Arc<Cache>,
    key: CacheKey,
    tell: watch::Sender<Option<Result<Output, ToolError>>>,
}

impl Leader {
    fn tell(self, result: &Result<Output, ToolError>, ttl: Duration) {
        if let Ok(output) = result {
            self.cache.kept.insert(self.key.clone(), Kept { output: Arc::new(output.clone()), since: Instant::now(), ttl });
        }
        // A caller who gave up says nothing about the others, and a request is for one of them.
        if !matches!(result, Err(error) if error.kind() == ErrorKind::Cancelled || error.input().is_some()) {
            self.tell.send_replace(Some(result.clone()));
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.cache.running.lock().remove(&self.key);
    }
}

/// Runs equal calls once and keeps what comes back.
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
                        leader.tell(&result, self.rule.ttl);
                        return result;
                    }
                    Err(mut result) => {
                        let told = tokio::select! {
                            told = result.wait_for(Option::is_some) => told.ok().and_then(|told| told.clone()),
                            () = cx.cancelled() => return Err(ToolError::cancelled()),
                        };
                        if let Some(result) = told {
                            return result.map(|output| output.with_metadata("cached", json!(true)));
                        }
                    }
                }
            }
        })
    }
}
