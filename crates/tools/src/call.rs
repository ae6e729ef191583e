//! The one entry point for calls: make a call, resume it after a decision, or let an approver decide until it is over.
//!
//! Nothing is locked while a person decides. A request can be stored, and its decision resumes exactly the call that was shown, even days
//! later in another process.

use std::time::Duration;

use helve_core::{ApprovalRequest, CallContext, DynApprover, Grant, Outcome, Status, ToolCall, decide_safely};

use crate::executor::{Admission, Executor};
use crate::toolkit::Toolkit;

/// The state of a call.
#[expect(clippy::large_enum_variant, reason = "almost every call is over")]
pub enum CallState {
    /// The call has its outcome; a background call is accepted.
    Over(Outcome),
    /// The call waits for a person: for a decision whether it may run, or for input that its tool needs. Pass the decision to
    /// [`Executor::resume`], with the call from the request.
    Waiting(Box<ApprovalRequest>),
}

impl CallState {
    /// The outcome so far: `waiting` if the call waits for a person.
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
    /// Makes a call, as far as it gets without a person.
    pub async fn call(&self, toolkit: &Toolkit, call: ToolCall, cx: &CallContext) -> CallState {
        self.enter(toolkit, call, None, cx, !cx.is_silent()).await
    }

    /// Resumes a call after a person's decision: the call from the request, and the grant that [`ApprovalRequest::grant`] made of the
    /// decision. A grant is valid once, and for this call only.
    pub async fn resume(&self, toolkit: &Toolkit, call: ToolCall, grant: Grant, cx: &CallContext) -> CallState {
        let edited = grant.arguments.as_ref().map(|arguments| self.redactor().cleaned(arguments));
        let mut state = self.enter(toolkit, call, Some(Box::new(grant)), cx, !cx.is_silent()).await;
        if let (Some(arguments), CallState::Over(Outcome { status: Status::Done(Ok(output)), .. })) = (edited, &mut state) {
            output.text = format!("[the user changed the arguments to {arguments}]\n{}", output.text);
        }
        state
    }

    /// Makes a call and lets an approver decide about every request. The call is still waiting only if the approver decides "later".
    pub async fn call_with(&self, toolkit: &Toolkit, call: ToolCall, cx: &CallContext, approver: &dyn DynApprover) -> CallState {
        let mut state = self.call(toolkit, call, cx).await;
        while let CallState::Waiting(request) = state {
            let decision = decide_safely(approver, &request).await;
            let Some(grant) = request.grant(decision, approver.recorded_as()) else { return CallState::Waiting(request) };
            state = self.resume(toolkit, request.call, grant, cx).await;
        }
        state
    }

    /// Makes a call without an approver. A call that needs approval returns `waiting` and drops its request; a tool's input request is a
    /// failure.
    pub async fn execute(&self, toolkit: &Toolkit, call: ToolCall, cx: &CallContext) -> Outcome {
        self.enter(toolkit, call, None, cx, false).await.into_outcome()
    }

    /// The grant is boxed, because few calls have one and every call would carry its size.
    async fn enter(&self, toolkit: &Toolkit, call: ToolCall, grant: Option<Box<Grant>>, cx: &CallContext, may_ask: bool) -> CallState {
        match self.admit(toolkit, call, cx, grant).await {
            Admission::Ready(prepared) => self.attempt(prepared, cx, may_ask).await,
            Admission::Decided(state) => state,
        }
    }
}
