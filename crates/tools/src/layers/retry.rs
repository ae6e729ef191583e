//! Retries transient failures of idempotent tools, with backoff.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::{Backoff, CallContext, DynLayer, Next, Output, Rules, ToolCall, ToolError};
use serde_json::json;

const FIRST_DELAY: Duration = Duration::from_millis(200);
/// Maximum delay before a retry. If a server requests a longer delay, the call fails, and the model decides what to do.
const LONGEST_DELAY: Duration = Duration::from_secs(20);

/// Retries transient failures.
pub(crate) struct Retry {
    retries: u32,
}

impl Retry {
    /// Creates the layer. Returns `None` if the tool has no retries or is not idempotent.
    pub(crate) fn layer(rules: &Rules) -> Option<Arc<dyn DynLayer>> {
        (rules.idempotent && rules.retries > 0).then(|| Arc::new(Self { retries: rules.retries }) as Arc<dyn DynLayer>)
    }
}

impl DynLayer for Retry {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
            let mut attempt = 1u32;
            loop {
                let error = match next.run(call, cx).await {
                    Ok(output) if attempt > 1 => return Ok(output.with_metadata("attempts", json!(attempt))),
                    Ok(output) => return Ok(output),
                    Err(error) => error,
                };
                let delay = error.delay().unwrap_or_else(|| backoff.delay());
                if attempt > self.retries || !error.is_retryable() || delay > LONGEST_DELAY {
                    return Err(if attempt > 1 { error.with("attempts", json!(attempt)) } else { error });
                }
                tracing::debug!(call = %call.id, tool = %call.tool, error = error.kind().name(), ?delay, "retrying");
                tokio::select! {
                    () = tokio::time::sleep(delay) => attempt += 1,
                    () = cx.cancelled() => return Err(ToolError::cancelled()),
                }
            }
        })
    }
}
