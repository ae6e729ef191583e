//! Who is asked about a call that must be confirmed.

use helve_core::{BoxFuture, Question};
use serde_json::Value;

/// Someone who can answer at once. Without one, a run that needs an answer pauses.
pub trait Approver: Send + Sync + 'static {
    /// Asks about one call. Other calls go on meanwhile.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answered>;
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
    /// It may run with these arguments instead.
    Edit(Value),
    /// Nobody answers now: the run pauses.
    Later,
    /// Nobody answered in time.
    Expired,
}
