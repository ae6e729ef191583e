//! Who is asked about a call that must be confirmed, or whose tool wants to know something.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::approval::ApprovalRequest;

/// Someone who can answer at once: a person at a terminal, a policy of your own, a closure.
///
/// ```
/// use helve_core::{ApprovalRequest, Approver, Decision};
///
/// fn careful() -> impl Approver {
///     |request: ApprovalRequest| async move {
///         if request.tool.starts_with("read_") { Decision::Approve } else { Decision::Later }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot answer requests about calls",
    note = "implement `Approver`, or use a closure that takes an `ApprovalRequest` and gives a future of `Decision`"
)]
pub trait Approver: Send + Sync + 'static {
    /// Asks about one call. Other calls go on meanwhile.
    fn decide(&self, request: &ApprovalRequest) -> impl Future<Output = Decision> + Send;

    /// The name under which answers are recorded.
    fn name(&self) -> String {
        "user".to_owned()
    }
}

impl<F, A> Approver for F
where
    F: Fn(ApprovalRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Decision> + Send,
{
    fn decide(&self, request: &ApprovalRequest) -> impl Future<Output = Decision> + Send {
        self(request.clone())
    }
}

/// An [`Approver`] of any type. Implement `Approver`; this follows.
pub trait DynApprover: Send + Sync + 'static {
    /// Asks about one call.
    fn decide_boxed<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision>;

    /// The name under which answers are recorded.
    fn recorded_as(&self) -> String;
}

impl<A: Approver> DynApprover for A {
    fn decide_boxed<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        Box::pin(self.decide(request))
    }

    fn recorded_as(&self) -> String {
        self.name()
    }
}

/// Asks an approver. If it panics, the request stays open.
pub async fn decide_safely(approver: &dyn DynApprover, request: &ApprovalRequest) -> Decision {
    // The future is made inside, because making it may panic as well.
    let asked = AssertUnwindSafe(async { approver.decide_boxed(request).await }).catch_unwind().await;
    asked.unwrap_or_else(|_| {
        tracing::error!(request = %request.id, tool = &*request.tool, "the approver panicked; the request stays open");
        Decision::Later
    })
}

/// What a person says to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The call may run.
    Approve,
    /// It may run, and so may every other call of this tool in this conversation.
    Always,
    /// It may not; the model is told why.
    Deny {
        /// A word to the model.
        reason: Option<String>,
    },
    /// It may run with these arguments instead. Where the tool wants to know something, this is what it is told.
    Edit(Value),
    /// No answer yet: the call waits, and so does its run.
    Later,
    /// The request expired.
    Expired,
}
