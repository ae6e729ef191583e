//! Lists pending approval requests, and records decisions about them from any process.

use helve_core::store::{Approval, DecisionRecord, DecisionResult};
use helve_core::{ApprovalId, ApprovalRequest, Decision, Schema, StoreError};
use serde_json::Value;

use super::Helve;

/// Maximum number of requests that [`Helve::pending`] lists.
const LISTED: usize = 1000;

/// Why a decision was not recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// The request was decided before, has expired, or was cancelled.
    #[error("the approval request is already {}", .0.state.name())]
    TooLate(Box<Approval>),
    /// There is no such request.
    #[error("there is no approval request {0}")]
    Unknown(ApprovalId),
    /// The decision is `Later` or `Expired`, which cannot be recorded.
    #[error("`Later` and `Expired` cannot be recorded as decisions; approve, deny or edit")]
    NoDecision,
    /// The arguments do not match the tool's schema, or the schema of the input that the tool requests.
    #[error("{0}")]
    Invalid(String),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// # Approvals
impl Helve {
    /// Lists pending approval requests, newest first.
    ///
    /// # Errors
    /// Returns an error if no store is open, or the store fails.
    pub async fn pending(&self) -> Result<Vec<Approval>, StoreError> {
        self.stored()?.approvals(None, true, LISTED).await
    }

    /// Decides an approval request. Exactly one decision counts. In the result, `request.caller.run` is the run that waits for the
    /// decision, if any.
    ///
    /// # Errors
    /// Returns an error if the request is already decided, the decision is invalid, or the store fails.
    pub async fn decide(&self, id: ApprovalId, decision: &Decision, by: &str) -> Result<Approval, DecideError> {
        self.decide_with(id, DecisionRecord::of(decision, by).ok_or(DecideError::NoDecision)?).await
    }

    /// Decides an approval request like [`Helve::decide`], but takes the complete record of a decision. New arguments are validated first.
    ///
    /// # Errors
    /// Returns an error if the request is already decided, the decision is invalid, or the store fails.
    pub async fn decide_with(&self, id: ApprovalId, decision: DecisionRecord) -> Result<Approval, DecideError> {
        let store = self.stored()?;
        if let (Some(arguments), Some(approval)) = (&decision.arguments, store.approval(id).await?) {
            self.check(arguments, &approval.request)?;
        }
        match store.decide(id, decision).await? {
            DecisionResult::Accepted(approval) => Ok(*approval),
            DecisionResult::TooLate(approval) => Err(DecideError::TooLate(approval)),
            DecisionResult::Unknown => Err(DecideError::Unknown(id)),
        }
    }

    /// Validates new arguments of a call, or the input that a tool requests.
    fn check(&self, arguments: &Value, request: &ApprovalRequest) -> Result<(), DecideError> {
        let problems = if let Some(needed) = &request.input {
            Schema::new(needed.schema()).map_err(|error| DecideError::Invalid(error.to_string()))?.check(arguments)
        } else {
            let entry = self.catalogue.get(&request.tool);
            entry.and_then(|entry| entry.spec().input().fit(&mut arguments.clone()).err()).unwrap_or_default()
        };
        let listed: Vec<_> = problems.iter().map(ToString::to_string).collect();
        if listed.is_empty() { Ok(()) } else { Err(DecideError::Invalid(listed.join("; "))) }
    }

    fn stored(&self) -> Result<&std::sync::Arc<dyn helve_core::Store>, StoreError> {
        let none = || StoreError::Unavailable("no store is open: set one with `Helve::builder().store(…)` or `open_store`".to_owned());
        self.executor.store().map(helve_tools::StoreHandle::inner).ok_or_else(none)
    }
}
