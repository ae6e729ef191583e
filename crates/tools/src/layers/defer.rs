//! Background calls go into the durable queue instead of running now.

use helve_core::store::NewTask;
use helve_core::{Caller, ErrorKind, Mode, ToolCall, ToolError};

use crate::catalogue::Entry;
use crate::record::Record;

/// Accepts a background call into the queue, or lets an inline call through. Says whether it was accepted.
///
/// There is no queue without a record, and a promise that a crash would break is worse than a refusal.
pub(crate) async fn defer(record: Option<&Record>, entry: &Entry, call: &ToolCall, caller: &Caller) -> Result<bool, ToolError> {
    if entry.spec().rules().mode == Mode::Inline {
        return Ok(false);
    }
    let Some(record) = record else {
        let message = format!("`{}` runs in the background, which needs a store, and none is set up", entry.name());
        return Err(ToolError::new(ErrorKind::Storage, message).transient(false));
    };
    let task = task(entry, call, caller);
    match record.store().accept(task).await {
        Ok(_) => Ok(true),
        Err(error) => Err(ToolError::new(ErrorKind::Storage, format!("`{}` was not accepted", entry.name())).caused_by(error)),
    }
}

/// A call as a task.
pub(crate) fn task(entry: &Entry, call: &ToolCall, caller: &Caller) -> NewTask {
    let rules = entry.spec().rules();
    NewTask {
        tool: entry.name().clone(),
        caller: caller.clone(),
        idempotent: rules.idempotent,
        priority: rules.priority,
        delay: rules.delay,
        ..NewTask::new(call.clone(), entry.digest())
    }
}
