//! Questions that wait for a person, in any process.

use helve_core::store::{Approval, DecisionRecord, DecisionResult};
use helve_core::{ApprovalId, ApprovalRequest, Decision, Schema, StoreError};
use serde_json::Value;

use super::Helve;

/// So many requests are listed at most.
const LISTED: usize = 1000;

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// Another answer came first, or the caller no longer waits.
    #[error("the request was answered before, or is over: {}", .0.state.name())]
    TooLate(Box<Approval>),
    /// There is no such request.
    #[error("there is no request {0}")]
    Unknown(ApprovalId),
    /// "Later" and "expired" are no answers.
    #[error("this answers nothing")]
    NoDecision,
    /// What was written does not fit the tool, or what it wants to know.
    #[error("{0}")]
    Invalid(String),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Helve {
    /// Pending requests, newest first.
    ///
    /// # Errors
    /// Where there is no store, or it cannot be used.
    pub async fn pending(&self) -> Result<Vec<Approval>, StoreError> {
        self.stored()?.approvals(None, true, LISTED).await
    }

    /// Answers a request. Exactly one answer counts. The run that waits for it, if one does, is `approval.request.caller.run`.
    ///
    /// # Errors
    /// Where the answer does not count, or the store cannot be used.
    pub async fn decide(&self, id: ApprovalId, decision: &Decision, by: &str) -> Result<Approval, DecideError> {
        self.decide_with(id, DecisionRecord::of(decision, by).ok_or(DecideError::NoDecision)?).await
    }

    /// Like [`Self::decide`], with everything a decision can carry. What the person wrote must fit the tool before it counts.
    ///
    /// # Errors
    /// Where the answer does not count, or the store cannot be used.
    pub async fn decide_with(&self, id: ApprovalId, decision: DecisionRecord) -> Result<Approval, DecideError> {
        let store = self.stored()?;
        if let (Some(written), Some(asked)) = (&decision.arguments, store.approval(id).await?) {
            self.check(written, &asked.request)?;
        }
        match store.decide(id, decision).await? {
            DecisionResult::Accepted(approval) => Ok(*approval),
            DecisionResult::TooLate(approval) => Err(DecideError::TooLate(approval)),
            DecisionResult::Unknown => Err(DecideError::Unknown(id)),
        }
    }

    /// Whether what a person wrote fits: arguments instead of those that were asked about, or what a tool wants to know.
    fn check(&self, written: &Value, request: &ApprovalRequest) -> Result<(), DecideError> {
        let problems = if let Some(needed) = &request.input {
            Schema::new(needed.schema()).map_err(|error| DecideError::Invalid(error.to_string()))?.check(written)
        } else {
            let entry = self.catalogue.get(&request.tool);
            entry.and_then(|entry| entry.spec().input().fit(&mut written.clone()).err()).unwrap_or_default()
        };
        let listed: Vec<_> = problems.iter().map(ToString::to_string).collect();
        if listed.is_empty() { Ok(()) } else { Err(DecideError::Invalid(listed.join("; "))) }
    }

    fn stored(&self) -> Result<&std::sync::Arc<dyn helve_core::Store>, StoreError> {
        let none = || StoreError::Unavailable("no store is open: name one with `Helve::builder().store(…)` or `open_store`".to_owned());
        self.executor.store().map(helve_tools::StoreHandle::inner).ok_or_else(none)
    }
}
