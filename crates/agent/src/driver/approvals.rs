//! Approvals in a run: passes requests to the approver, records decisions, and resumes the calls.

use helve_core::store::{DecisionRecord, DecisionResult};
use helve_core::{ApprovalRequest, Decision, Grant, Verdict};

use super::Driver;
use super::log::ALWAYS;
use crate::error::AgentError;
use crate::run::{Answer, Input};

impl Driver<'_> {
    /// Resumes a paused run that is not stored.
    pub(crate) async fn resume(mut self, requests: Vec<ApprovalRequest>, mut grants: Vec<Grant>) -> Result<Answer, AgentError> {
        self.agent.accept_background_calls();
        self.environment.toolkit = self.agent.toolkit()?;
        for request in requests {
            let fits = |grant: &Grant| grant.approval_id == request.id && grant.digest == request.digest;
            match grants.iter().position(fits) {
                Some(index) => self.resume_call(request, grants.swap_remove(index)),
                None => self.open.push(request),
            }
        }
        self.paused = true;
        self.drive().await
    }

    /// Passes a request to the approver, or approves it if a person has allowed the tool for the whole conversation. Without an approver
    /// the request stays open.
    pub(super) fn request_approval(&mut self, request: ApprovalRequest) {
        let entry = self.environment.toolkit.get(&request.call.tool);
        let allowed = entry.is_some_and(|entry| self.agent.conversation.allowed.contains(&entry.digest()));
        if allowed && request.input.is_none() {
            let grant = request.grant(Decision::Approve, ALWAYS);
            return self.decided(request, grant, false);
        }
        if let Some(log) = &mut self.log
            && let Some(approval) = self.environment.toolkit.approval(request.clone())
        {
            log.requests.push(approval);
        }
        match &self.agent.approver {
            Some(approver) => {
                let approver = approver.clone();
                self.deciding.push(Box::pin(async move {
                    let decision = helve_core::decide_safely(&*approver, &request).await;
                    (request, decision, approver.recorded_as())
                }));
            }
            None => self.open.push(request),
        }
    }

    /// Applies a decision. If `grant` is `None`, the request stays open. If `always` is set, later calls to the tool need no approval, as
    /// long as the tool does not change.
    pub(super) fn decided(&mut self, request: ApprovalRequest, grant: Option<Grant>, always: bool) {
        if always && let Some(entry) = self.environment.toolkit.get(&request.call.tool) {
            self.agent.conversation.allowed.insert(entry.digest());
        }
        match grant {
            Some(grant) => self.resume_call(request, grant),
            None => self.open.push(request),
        }
    }

    /// Resumes the call of a decided request, if the run still waits for the decision.
    fn resume_call(&mut self, request: ApprovalRequest, grant: Grant) {
        if !self.run.is_waiting(request.id) {
            return;
        }
        self.paused = false;
        self.handle(Input::Decided { approval: request.id, verdict: grant.verdict, by: grant.by.clone() });
        self.start_call(request.call, Some(grant));
    }

    /// Stores a decision. Returns the grant that counts, which may come from an earlier decision, and whether the decision covers later
    /// calls to the tool.
    pub(super) async fn record_decision(
        &mut self,
        request: &ApprovalRequest,
        decision: Decision,
        by: &str,
    ) -> Result<(Option<Grant>, bool), AgentError> {
        if let Some(log) = &self.log {
            let store = log.store.inner().clone();
            let stored = match DecisionRecord::of(&decision, by) {
                Some(record) => match store.decide(request.id, record).await? {
                    DecisionResult::Accepted(approval) | DecisionResult::TooLate(approval) => Some(*approval),
                    DecisionResult::Unknown => None,
                },
                // The approver decides later, but another person may have decided in the meantime.
                None => store.approval(request.id).await?,
            };
            if let Some(approval) = stored
                && let Some(grant) = approval.grant()
            {
                return Ok((Some(grant), approval.is_always()));
            }
        }
        let always = decision == Decision::Always && request.input.is_none();
        let grant = request.grant(decision, by);
        let always = always && grant.as_ref().is_some_and(|grant| grant.verdict == Verdict::Approve);
        Ok((grant, always))
    }

    /// Applies decisions from the store to open requests. Returns whether there were any.
    pub(super) async fn take_decisions(&mut self) -> Result<bool, AgentError> {
        let Some(store) = self.log.as_ref().map(|log| log.store.clone()) else { return Ok(false) };
        let mut any = false;
        for approval in store.approvals(Some(self.run.id()), false, usize::MAX).await? {
            let open = self.open.iter().position(|request| request.id == approval.request.id);
            if let (Some(index), Some(grant)) = (open, approval.grant()) {
                let request = self.open.swap_remove(index);
                self.decided(request, Some(grant), approval.is_always());
                any = true;
            }
        }
        Ok(any)
    }
}
