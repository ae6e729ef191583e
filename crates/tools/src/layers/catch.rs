//! A panic in a tool is a failed call, not a dead process.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynLayer, Next, Output, ToolCall, ToolError};

/// Turns panics into `failed`.
pub(crate) struct Catch {
    who: &'static str,
}

impl Catch {
    /// Around the tool alone, so that retries and those who share its result see a failure.
    pub(crate) fn tool() -> Arc<dyn DynLayer> {
        static TOOL: LazyLock<Arc<Catch>> = LazyLock::new(|| Arc::new(Catch { who: "the tool" }));
        TOOL.clone()
    }

    /// Around everything, so that a broken layer costs a call and not its caller.
    pub(crate) fn layers() -> Arc<dyn DynLayer> {
        static LAYERS: LazyLock<Arc<Catch>> = LazyLock::new(|| Arc::new(Catch { who: "a layer" }));
        LAYERS.clone()
    }
}

impl DynLayer for Catch {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            // The call is over after a panic and nothing of it is used again, so broken invariants stay inside.
            let work = AssertUnwindSafe(async { next.run(call, cx).await });
            work.catch_unwind().await.unwrap_or_else(|panic| Err(panicked(self.who, &*panic)))
        })
    }
}

/// What is told of a panic.
pub(crate) fn panicked(who: &str, panic: &(dyn Any + Send)) -> ToolError {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ToolError::failed(format!("{who} panicked: {}", said.unwrap_or("without a message")))
}
