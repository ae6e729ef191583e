//! Approvers, which decide approval requests and input requests while the call waits.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::approval::ApprovalRequest;

/// Decides requests while the call waits: a person at a terminal, a custom policy, a closure.
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
    message = "`{Self}` is not an approver",
    note = "implement `Approver`, or use a closure that takes an `ApprovalRequest` and returns a future of `Decision`"
)]
pub trait Approver: Send + Sync + 'static {
    /// Decides one request. Meanwhile other calls continue.
    fn decide(&self, request: &ApprovalRequest) -> impl Future<Output = Decision> + Send;

    /// Returns the name that is stored with the approver's decisions.
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

/// An [`Approver`] behind a pointer. Every approver implements this trait.
pub trait DynApprover: Send + Sync + 'static {
    /// Decides one request.
    fn decide_boxed<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision>;

    /// Returns the name that is stored with the approver's decisions.
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

/// Lets an approver decide a request. Returns [`Decision::Later`] if the approver panics, so the request stays pending.
pub async fn decide_safely(approver: &dyn DynApprover, request: &ApprovalRequest) -> Decision {
    // Inside an async block, because creating the future may also panic.
    let decision = AssertUnwindSafe(async { approver.decide_boxed(request).await }).catch_unwind().await;
    decision.unwrap_or_else(|_| {
        tracing::error!(request = %request.id, tool = &*request.tool, "the approver panicked; the request stays pending");
        Decision::Later
    })
}

/// A decision on a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The call may run.
    Approve,
    /// This call and all later calls to the tool in this conversation may run.
    Always,
    /// The call must not run.
    Deny {
        /// A message for the model.
        reason: Option<String>,
    },
    /// The call may run with these arguments instead. For an input request: the response.
    Edit(Value),
    /// No decision yet: the request stays pending, and the call and its run wait.
    Later,
    /// The request expired before a person decided.
    Expired,
}
