//! The only entry point for calls: run a call, resume it after a decision, or let an approver decide until the call is over.
//!
//! Nothing is locked while a person decides. An approval request can be stored, and the decision resumes exactly the call that was shown,
//! even days later in another process.

use std::time::Duration;

use helve_core::{ApprovalRequest, CallContext, DynApprover, Grant, Outcome, Status, ToolCall, decide_safely};

use crate::executor::{Admission, Executor};
use crate::toolkit::Toolkit;

/// The state of a call.
#[expect(clippy::large_enum_variant, reason = "almost every call is over")]
pub enum CallState {
    /// The call has an outcome. For a background call, the outcome is that the queue accepted it.
    Over(Outcome),
    /// The call waits for a person: for a decision whether it may run, or for input that its tool needs. Pass the decision to
    /// [`Executor::resume`], together with the call from the request.
    Waiting(Box<ApprovalRequest>),
}

impl CallState {
    /// Returns the outcome so far; its status is `waiting` if the call waits for a person.
    #[must_use]
    pub fn into_outcome(self) -> Outcome {
        match self {
            Self::Over(outcome) => outcome,
            Self::Waiting(request) => {
                let status = Status::Waiting(request.id);
                Outcome { call_id: request.call.id, tool: request.tool, status, duration: Duration::ZERO }
            }
        }
    }
}

impl Executor {
    /// Runs a call as far as possible without a person.
    pub async fn call(&self, toolkit: &Toolkit, call: ToolCall, cx: &CallContext) -> CallState {
        self.enter(toolkit, call, None, cx, !cx.is_silent()).await
    }

    /// Resumes a call after a person's decision. `call` is the call from the request, and `grant` comes from [`ApprovalRequest::grant`]. A
    /// grant is valid once, for this call only.
    pub async fn resume(&self, toolkit: &Toolkit, call: ToolCall, grant: Grant, cx: &CallContext) -> CallState {
        let edited = grant.arguments.as_ref().map(|arguments| self.redactor().cleaned(arguments));
        let mut state = self.enter(toolkit, call, Some(Box::new(grant)), cx, !cx.is_silent()).await;
        if let (Some(arguments), CallState::Over(Outcome { status: Status::Done(Ok(output)), .. })) = (edited, &mut state) {
            output.text = format!("[the user changed the arguments to {arguments}]\n{}", output.text);
        }
        state
    }

    /// Runs a call and lets an approver decide every request. Returns `Waiting` only if the approver decides
    /// [`Later`](helve_core::Decision::Later).
    pub async fn call_with(&self, toolkit: &Toolkit, call: ToolCall, cx: &CallContext, approver: &dyn DynApprover) -> CallState {
        let mut state = self.call(toolkit, call, cx).await;
        while let CallState::Waiting(request) = state {
            let decision = decide_safely(approver, &request).await;
            let Some(grant) = request.grant(decision, approver.recorded_as()) else { return CallState::Waiting(request) };
            state = self.resume(toolkit, request.call, grant, cx).await;
        }
        state
    }

    /// Runs a call without an approver. If the call needs approval, the status is `waiting` and the request is dropped. If the tool
    /// requests input, the call fails.
    pub async fn execute(&self, toolkit: &Toolkit, call: ToolCall, cx: &CallContext) -> Outcome {
        self.enter(toolkit, call, None, cx, false).await.into_outcome()
    }

    /// Runs a call, after a decision if there is a grant. The grant is boxed because few calls have one, and every call would carry its
    /// size.
    async fn enter(&self, toolkit: &Toolkit, call: ToolCall, grant: Option<Box<Grant>>, cx: &CallContext, may_ask: bool) -> CallState {
        match self.admit(toolkit, call, cx, grant).await {
            Admission::Ready(prepared) => self.attempt(prepared, cx, may_ask).await,
            Admission::Decided(state) => state,
        }
    }
}
