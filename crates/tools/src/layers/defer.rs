//! Puts background calls into the durable queue.

use std::sync::Arc;

use helve_core::store::{Consent, NewTask};
use helve_core::{ApprovalId, Caller, Digest, ErrorKind, Mode, ToolCall, ToolError};

use crate::durable::StoreHandle;
use crate::toolkit::Member;

/// Who makes a call.
pub(crate) struct CallOrigin<'a> {
    pub(crate) caller: &'a Caller,
    /// The agent that owns the toolkit. It takes precedence over the caller's own statement.
    pub(crate) agent: Option<&'a Arc<str>>,
    /// The approval of this call.
    pub(crate) approval: Option<ApprovalId>,
}

impl CallOrigin<'_> {
    /// The caller, for the rules that apply when the call runs.
    fn caller(&self) -> Caller {
        match self.agent {
            Some(agent) => self.caller.clone().agent(agent.clone()),
            None => self.caller.clone(),
        }
    }

    /// The consent that a worker checks: an approval, or a direct call by a person.
    fn consent(&self, call: &ToolCall, definition: Digest) -> Option<Consent> {
        match self.approval {
            Some(approval) => Some(Consent::of_approval(approval, call, definition)),
            None => (self.caller() == Caller::default()).then(|| Consent::of_caller(call, definition)),
        }
    }
}

/// Puts a background call into the queue, and lets an inline call pass. Returns whether the call was accepted into the queue.
///
/// Without a store there is no durable queue, so the call is refused rather than lost in a crash.
pub(crate) async fn defer(
    store: Option<&StoreHandle>,
    member: &Member,
    call: &ToolCall,
    origin: &CallOrigin<'_>,
) -> Result<bool, ToolError> {
    let entry = &member.entry;
    if entry.spec().rules().mode == Mode::Inline {
        return Ok(false);
    }
    let Some(store) = store else {
        let message = format!("`{}` runs in the background, which needs a store; none is configured", entry.name());
        return Err(ToolError::new(ErrorKind::Storage, message).transient(false));
    };
    match store.accept(task(member, call, origin)).await {
        Ok(_) => Ok(true),
        Err(error) => Err(ToolError::new(ErrorKind::Storage, format!("`{}` could not be queued", entry.name())).caused_by(error)),
    }
}

/// The task for a call.
fn task(member: &Member, call: &ToolCall, origin: &CallOrigin<'_>) -> NewTask {
    let entry = &member.entry;
    let rules = entry.spec().rules();
    NewTask {
        tool: entry.name().clone(),
        caller: origin.caller(),
        sets: member.sets.clone(),
        consent: origin.consent(call, entry.digest()),
        idempotent: rules.idempotent,
        priority: rules.priority,
        delay: rules.delay,
        ..NewTask::new(call.clone(), entry.digest())
    }
}
