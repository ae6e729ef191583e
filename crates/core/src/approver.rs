//! Who is asked about a call that must be confirmed, or whose tool wants to know something.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::approval::Question;

/// Someone who can answer at once: a person at a terminal, a policy of your own, a closure.
///
/// ```
/// use helve_core::{Answered, Approver, Question};
///
/// fn careful() -> impl Approver {
///     |question: Question| async move {
///         if question.tool.starts_with("read_") { Answered::Approve } else { Answered::Later }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot answer questions about calls",
    note = "implement `Approver`, or use a closure that takes a `Question` and gives a future of `Answered`"
)]
pub trait Approver: Send + Sync + 'static {
    /// Asks about one call. Other calls go on meanwhile.
    fn ask(&self, question: &Question) -> impl Future<Output = Answered> + Send;

    /// The name under which answers are recorded.
    fn name(&self) -> String {
        "user".to_owned()
    }
}

impl<F, A> Approver for F
where
    F: Fn(Question) -> A + Send + Sync + 'static,
    A: Future<Output = Answered> + Send,
{
    fn ask(&self, question: &Question) -> impl Future<Output = Answered> + Send {
        self(question.clone())
    }
}

/// An [`Approver`] of any type. Implement `Approver`; this follows.
pub trait DynApprover: Send + Sync + 'static {
    /// Asks about one call.
    fn ask_boxed<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answered>;

    /// The name under which answers are recorded.
    fn recorded_as(&self) -> String;
}

impl<A: Approver> DynApprover for A {
    fn ask_boxed<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answered> {
        Box::pin(self.ask(question))
    }

    fn recorded_as(&self) -> String {
        self.name()
    }
}

/// Asks an approver. If it panics, the question stays open.
pub async fn ask_safely(approver: &dyn DynApprover, question: &Question) -> Answered {
    // The future is made inside, because making it may panic as well.
    let asked = AssertUnwindSafe(async { approver.ask_boxed(question).await }).catch_unwind().await;
    asked.unwrap_or_else(|_| {
        tracing::error!(question = %question.id, tool = &*question.tool, "the approver panicked; the question stays open");
        Answered::Later
    })
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
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
    /// The question expired.
    Expired,
}
