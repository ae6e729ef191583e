//! Puts background calls into the queue of the store.

use helve_core::store::{Consent, NewTask};
use helve_core::{ApprovalId, CallContext, Caller, ErrorKind, Mode, ToolCall, ToolError};

use crate::durable::StoreHandle;
use crate::toolkit::{Member, Toolkit};

/// Puts a background call into the queue; inline calls pass. Returns whether the call was accepted into the queue.
///
/// Without a store, a background call is rejected, because it would be lost if the process crashed.
pub(crate) async fn defer(
    store: Option<&StoreHandle>,
    toolkit: &Toolkit,
    member: &Member,
    call: &ToolCall,
    cx: &CallContext,
    approval: Option<ApprovalId>,
) -> Result<bool, ToolError> {
    let (entry, rules) = (&member.entry, member.entry.spec().rules());
    if rules.mode == Mode::Inline {
        return Ok(false);
    }
    let Some(store) = store else {
        let message = format!("`{}` runs in the background, which needs a store; none is configured", entry.name());
        return Err(ToolError::new(ErrorKind::Storage, message).transient(false));
    };
    let (caller, definition) = (toolkit.caller(cx), entry.digest());
    // A worker runs a call that needs approval only if a person approved it or made it directly.
    let consent = match approval {
        Some(approval) => Some(Consent::of_approval(approval, call, definition)),
        None => (caller == Caller::default()).then(|| Consent::of_caller(call, definition)),
    };
    let task = NewTask {
        tool: entry.name().clone(),
        caller,
        sets: member.sets.clone(),
        consent,
        idempotent: rules.idempotent,
        priority: rules.priority,
        delay: rules.delay,
        ..NewTask::new(call.clone(), definition)
    };
    match store.accept(task).await {
        Ok(_) => Ok(true),
        Err(error) => Err(ToolError::new(ErrorKind::Storage, format!("`{}` could not be queued", entry.name())).caused_by(error)),
    }
}
