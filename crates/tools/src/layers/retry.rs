//! Transient failures of idempotent tools are tried again, later and later.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynLayer, Next, Output, Rules, ToolCall, ToolError};
use serde_json::json;

const FIRST_DELAY: Duration = Duration::from_millis(200);
/// Also the longest wait that a server may ask for; past it the model should decide.
const LONGEST_DELAY: Duration = Duration::from_secs(20);

/// Tries transient failures again.
pub(crate) struct Retry {
    retries: u32,
}

impl Retry {
    /// Only idempotent tools are tried again, whatever their rules ask for.
    pub(crate) fn layer(rules: &Rules) -> Option<Arc<dyn DynLayer>> {
        (rules.idempotent && rules.retries > 0).then(|| Arc::new(Self { retries: rules.retries }) as Arc<dyn DynLayer>)
    }
}

impl DynLayer for Retry {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let backoff = ExponentialBuilder::default().with_min_delay(FIRST_DELAY).with_max_delay(LONGEST_DELAY).with_jitter();
            let mut delays = backoff.with_max_times(self.retries as usize).build();
            let mut attempt = 1u32;
            loop {
                let error = match next.run(call, cx).await {
                    Ok(output) if attempt > 1 => return Ok(output.with_metadata("attempts", json!(attempt))),
                    Ok(output) => return Ok(output),
                    Err(error) => error,
                };
                let delay = delays.next().map(|delay| error.delay().unwrap_or(delay));
                let Some(delay) = delay.filter(|delay| error.is_retryable() && *delay <= LONGEST_DELAY) else {
                    return Err(if attempt > 1 { error.with("attempts", json!(attempt)) } else { error });
                };
                tracing::debug!(call = %call.id, tool = %call.tool, error = error.kind().name(), ?delay, "trying again");
                tokio::select! {
                    () = tokio::time::sleep(delay) => attempt += 1,
                    () = cx.cancelled() => return Err(ToolError::cancelled()),
                }
            }
        })
    }
}
