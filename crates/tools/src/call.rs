//! The one door for a call: make it, go on with it after a person has answered, or let someone answer until it is over.
//!
//! Nothing is held while a person thinks. A request can be stored, and its answer opens exactly the call that was shown, days later and
//! in another process.

use std::time::Duration;

use helve_core::{ApprovalRequest, CallContext, DynApprover, Grant, Outcome, Status, ToolCall, decide_safely};

use crate::executor::{Admission, Executor};
use crate::toolkit::Toolkit;

/// How far a call has come.
#[expect(clippy::large_enum_variant, reason = "almost every call is over")]
pub enum CallState {
    /// It has its outcome; one in the background is accepted.
    Over(Outcome),
    /// It cannot go on before a person has answered: whether it may run, or what its tool wants to know. Give the answer to
    /// [`Executor::resume`], with the call that stands in the request.
    Waiting(Box<ApprovalRequest>),
}

impl CallState {
    /// The outcome so far: `waiting` where a person must answer.
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
    /// Makes a call, as far as it comes without a person.
    pub async fn call(&self, toolkit: &Toolkit, call: ToolCall, cx: &CallContext) -> CallState {
        self.enter(toolkit, call, None, cx, !cx.is_silent()).await
    }

    /// Goes on with a call that a person has answered: the call as the request shows it, and what [`ApprovalRequest::grant`] made of the answer.
    /// An answer counts once, and for this call only.
    pub async fn resume(&self, toolkit: &Toolkit, call: ToolCall, grant: Grant, cx: &CallContext) -> CallState {
        let written = grant.arguments.as_ref().map(|arguments| self.redactor().cleaned(arguments));
        let mut state = self.enter(toolkit, call, Some(Box::new(grant)), cx, !cx.is_silent()).await;
        if let (Some(arguments), CallState::Over(Outcome { status: Status::Done(Ok(output)), .. })) = (written, &mut state) {
            output.text = format!("[the user changed the arguments to {arguments}]\n{}", output.text);
        }
        state
    }

    /// Makes a call and lets someone answer whatever is asked about it. It comes back asking only where the answer is "later".
    pub async fn call_with(&self, toolkit: &Toolkit, call: ToolCall, cx: &CallContext, approver: &dyn DynApprover) -> CallState {
        let mut state = self.call(toolkit, call, cx).await;
        while let CallState::Waiting(request) = state {
            let answered = decide_safely(approver, &request).await;
            let Some(grant) = request.grant(answered, approver.recorded_as()) else { return CallState::Waiting(request) };
            state = self.resume(toolkit, request.call, grant, cx).await;
        }
        state
    }

    /// Makes a call without anyone to ask. A call that needs approval returns `waiting` and its request is dropped; a tool's request for
    /// input is a failure.
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
