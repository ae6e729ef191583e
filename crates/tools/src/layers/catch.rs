//! Catches panics: a panic in a tool or a layer fails the call, and the process continues.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynLayer, Next, Output, ToolCall, ToolError};

/// Turns panics into errors of kind `failed`.
pub(crate) struct Catch {
    who: &'static str,
}

impl Catch {
    /// Creates the layer. It is used twice: around the tool, so that retries and the cache see a failure, and around all other layers.
    pub(crate) fn layer(who: &'static str) -> Arc<dyn DynLayer> {
        Arc::new(Self { who })
    }
}

impl DynLayer for Catch {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            // The data of the call is not used after a panic, so broken invariants cannot spread.
            let work = AssertUnwindSafe(async { next.run(call, cx).await });
            work.catch_unwind().await.unwrap_or_else(|panic| Err(panicked(self.who, &*panic)))
        })
    }
}

/// Returns the error for a panic.
pub(crate) fn panicked(who: &str, panic: &(dyn Any + Send)) -> ToolError {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ToolError::failed(format!("{who} panicked: {}", message.unwrap_or("without a message")))
}
