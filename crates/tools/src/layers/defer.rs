//! Background calls go into the durable queue instead of running now.

use helve_core::{CallId, ErrorKind, Mode, ToolCall, ToolError};

use crate::catalogue::Entry;

/// Accepts a background call into the queue, or lets an inline call through.
///
/// There is no queue without a store, and a promise that a crash would break is worse than a refusal.
#[expect(clippy::unused_async, reason = "accepting a call into a store waits for its commit")]
pub(crate) async fn defer(entry: &Entry, _call: &ToolCall) -> Result<Option<CallId>, ToolError> {
    match entry.spec().rules().mode {
        Mode::Inline => Ok(None),
        Mode::Background => {
            let message = format!("`{}` runs in the background, which needs a store, and none is set up", entry.name());
            Err(ToolError::new(ErrorKind::Storage, message).transient(false))
        }
    }
}
