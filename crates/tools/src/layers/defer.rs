//! Background calls go into the durable queue instead of running now.

use std::sync::Arc;

use helve_core::store::{Consent, NewTask};
use helve_core::{ApprovalId, Caller, Digest, ErrorKind, Mode, ToolCall, ToolError};

use crate::durable::StoreHandle;
use crate::toolkit::Member;

/// Who makes a call that shall run in the background.
pub(crate) struct Maker<'a> {
    pub(crate) caller: &'a Caller,
    /// The agent whose toolkit it is, which counts more than what the caller says.
    pub(crate) agent: Option<&'a Arc<str>>,
    /// The approval that a person gave to this call.
    pub(crate) approval: Option<ApprovalId>,
}

impl Maker<'_> {
    /// On whose behalf the call is made, for the rules that hold when it runs.
    fn caller(&self) -> Caller {
        match self.agent {
            Some(agent) => self.caller.clone().agent(agent.clone()),
            None => self.caller.clone(),
        }
    }

    /// What a worker can go by that must not run the call without a person's consent: an approval, or that a person calls directly.
    fn consent(&self, call: &ToolCall, definition: Digest) -> Option<Consent> {
        match self.approval {
            Some(approval) => Some(Consent::of_approval(approval, call, definition)),
            None => (self.caller() == Caller::default()).then(|| Consent::of_caller(call, definition)),
        }
    }
}

/// Accepts a background call into the queue, or lets an inline call through. Says whether it was accepted.
///
/// There is no queue without a store, and a promise that a crash would break is worse than a refusal.
pub(crate) async fn defer(store: Option<&StoreHandle>, member: &Member, call: &ToolCall, maker: &Maker<'_>) -> Result<bool, ToolError> {
    let entry = &member.entry;
    if entry.spec().rules().mode == Mode::Inline {
        return Ok(false);
    }
    let Some(store) = store else {
        let message = format!("`{}` runs in the background, which needs a store, and none is set up", entry.name());
        return Err(ToolError::new(ErrorKind::Storage, message).transient(false));
    };
    match store.accept(task(member, call, maker)).await {
        Ok(_) => Ok(true),
        Err(error) => Err(ToolError::new(ErrorKind::Storage, format!("`{}` was not accepted", entry.name())).caused_by(error)),
    }
}

/// A call as a task.
fn task(member: &Member, call: &ToolCall, maker: &Maker<'_>) -> NewTask {
    let entry = &member.entry;
    let rules = entry.spec().rules();
    NewTask {
        tool: entry.name().clone(),
        caller: maker.caller(),
        sets: member.sets.clone(),
        consent: maker.consent(call, entry.digest()),
        idempotent: rules.idempotent,
        priority: rules.priority,
        delay: rules.delay,
        ..NewTask::new(call.clone(), entry.digest())
    }
}
