//! Stops calls on timeout and cancellation: signals the tool, waits for the grace period, and drops the call.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynLayer, ErrorKind, Next, Output, Rules, ToolCall, ToolError};
use serde_json::json;

/// Stops a call on timeout or cancellation.
pub(crate) struct Timeout {
    after: Duration,
    grace: Duration,
}

impl Timeout {
    pub(crate) fn layer(rules: &Rules, grace: Duration) -> Arc<dyn DynLayer> {
        Arc::new(Self { after: rules.attempt_timeout(), grace })
    }
}

impl DynLayer for Timeout {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let stop = cx.cancellation().child_token();
            let inner = cx.clone().with_cancel(stop.clone());
            let mut work = pin!(next.run(call, &inner));
            let error = tokio::select! {
                // A finished result counts even if the timeout has passed, but not if the caller cancelled the call.
                biased;
                result = &mut work => return if cx.is_cancelled() { Err(ToolError::cancelled()) } else { result },
                () = cx.cancelled() => ToolError::cancelled(),
                () = tokio::time::sleep(self.after) => {
                    let millis = u64::try_from(self.after.as_millis()).unwrap_or(u64::MAX);
                    ToolError::new(ErrorKind::Timeout, format!("no result after {:?}", self.after)).with("timeout_ms", json!(millis))
                }
            };
            stop.cancel();
            // A result is ignored from here on; the tool may only clean up.
            let _ = tokio::time::timeout(self.grace, work).await;
            Err(error)
        })
    }
}
