//! Stored approval requests, and the decision on each.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::approval::{ApprovalRequest, Grant, Verdict};
use crate::approver::Decision;
use crate::digest::Digest;
use crate::error::{Denial, ErrorKind, ToolError};
use crate::ids::{HolderId, RunId};
use crate::rules::{Mode, Rules};

/// The state of an approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// The request waits for a decision.
    Pending,
    /// A person approved the call.
    Approved,
    /// A person denied the call.
    Denied,
    /// The request expired without a decision.
    Expired,
    /// The run or process that made the request ended before a decision.
    Cancelled,
}

/// A stored approval request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Approval {
    /// The request, as it was shown to the person.
    #[serde(rename = "question")]
    pub request: ApprovalRequest,
    /// The run that started the run which made the request; only for sub-agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run: Option<RunId>,
    /// The process that waits for the decision. After approval this process runs the call itself, unless the call runs in the background.
    /// If the process is gone, the request is cancelled. `None` if no process waits, or a run does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<HolderId>,
    /// Digest of the tool's definition. Only a worker with the same definition may run the call.
    pub definition: Digest,
    /// The tool sets that give the caller the tool. Permission rules match them when the call runs.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub sets: Arc<[Arc<str>]>,
    /// Whether the call runs in the background.
    #[serde(default)]
    pub background: bool,
    /// Whether the call may run more than once.
    #[serde(default)]
    pub idempotent: bool,
    /// Priority of the call in the queue.
    #[serde(default)]
    pub priority: i8,
    /// Minimum time of the call in the queue, counted from the decision.
    #[serde(default)]
    pub delay: Duration,
    /// The state of the request.
    pub state: ApprovalState,
    /// The decision, if the request was decided.
    #[serde(rename = "reply", default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionRecord>,
    /// When the request was decided, expired or was cancelled.
    #[serde(rename = "answered_at", default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
}

/// A stored decision on an approval request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Whether the call was approved or denied.
    #[serde(rename = "decision")]
    pub verdict: Verdict,
    /// The name of the person or program that decided.
    pub by: Arc<str>,
    /// A message for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether calls to the tool need no more approval in this conversation.
    #[serde(default)]
    pub always: bool,
    /// Arguments that replace those of the request. For an input request: the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl DecisionRecord {
    /// Converts an approver's decision. Returns `None` for [`Decision::Later`] and [`Decision::Expired`].
    #[must_use]
    pub fn of(decision: &Decision, by: &str) -> Option<Self> {
        let record = |verdict| Self { verdict, by: by.into(), reason: None, always: false, arguments: None };
        Some(match decision {
            Decision::Later | Decision::Expired => return None,
            Decision::Approve => record(Verdict::Approve),
            Decision::Always => Self { always: true, ..record(Verdict::Approve) },
            Decision::Deny { reason } => Self { reason: reason.clone(), ..record(Verdict::Deny) },
            Decision::Edit(arguments) => Self { arguments: Some(arguments.clone()), ..record(Verdict::Approve) },
        })
    }

    /// Converts a grant. Returns `None` if the request had expired.
    #[must_use]
    pub fn of_grant(grant: &Grant, request: &ApprovalRequest) -> Option<Self> {
        let written = grant.given.as_ref().and_then(|given| given.answers.clone()).map(|mut answers| {
            let requests = request.input.as_ref().map(|needed| needed.requests.as_slice()).unwrap_or_default();
            match requests {
                [only] => answers.remove(&only.key).unwrap_or_default(),
                _ => Value::Object(answers),
            }
        });
        (grant.verdict != Verdict::Expired).then(|| Self {
            verdict: grant.verdict,
            by: grant.by.as_str().into(),
            reason: grant.reason.clone(),
            always: false,
            arguments: grant.arguments.clone().or(written),
        })
    }
}

/// The result of [`Store::decide`](super::Store::decide).
#[derive(Debug, Clone)]
pub enum DecisionResult {
    /// The decision was stored.
    Accepted(Box<Approval>),
    /// The request was already decided, had expired, or was cancelled.
    TooLate(Box<Approval>),
    /// The store has no request with this id.
    Unknown,
}

impl Approval {
    /// Creates a pending request for a call to a tool with this definition and these rules.
    #[must_use]
    pub fn new(request: ApprovalRequest, definition: Digest, rules: &Rules) -> Self {
        Self {
            request,
            parent_run: None,
            asker: None,
            definition,
            sets: Arc::from([]),
            background: rules.mode == Mode::Background,
            idempotent: rules.idempotent,
            priority: rules.priority,
            delay: rules.delay,
            state: ApprovalState::Pending,
            decision: None,
            decided_at: None,
        }
    }

    /// Returns the request as JSON, for the command line and webhooks.
    #[must_use]
    pub fn for_programs(&self) -> Value {
        let request = &self.request;
        json!({
            "id": request.id,
            "call_id": request.call.id,
            "tool": request.tool,
            "arguments": request.call.arguments,
            "digest": request.digest,
            "reason": request.reason,
            "state": self.state,
            "agent": request.caller.agent,
            "run_id": request.caller.run,
            "conversation_id": request.caller.conversation,
            "parent_run_id": self.parent_run,
            "asked_at": request.asked_at,
            "expires_at": request.expires_at,
            "input": request.input.as_ref().map(|needed| json!({"requests": needed.requests, "schema": needed.schema()})),
            "answered_at": self.decided_at,
            "answer": self.decision,
        })
    }

    /// Applies a decision. Returns false if the request has expired or is no longer pending.
    pub fn decide(&mut self, decision: DecisionRecord, now: Timestamp) -> bool {
        if self.expire(now) || self.state != ApprovalState::Pending {
            return false;
        }
        self.state = if decision.verdict == Verdict::Approve { ApprovalState::Approved } else { ApprovalState::Denied };
        self.decision = Some(decision);
        self.decided_at = Some(now);
        true
    }

    /// Sets the process that waits for the decision.
    #[must_use]
    pub fn asked_by(mut self, process: HolderId) -> Self {
        self.asker = Some(process);
        self
    }

    /// Cancels the request because the run or process that made it is gone.
    pub fn give_up(&mut self, now: Timestamp) {
        (self.state, self.decided_at) = (ApprovalState::Cancelled, Some(now));
    }

    /// Expires the request if its expiry time has passed. Returns whether the request expired.
    pub fn expire(&mut self, now: Timestamp) -> bool {
        let over = self.state == ApprovalState::Pending && self.request.expires_at.is_some_and(|end| end <= now);
        if over {
            self.state = ApprovalState::Expired;
            self.decided_at = Some(now);
        }
        over
    }

    /// Returns the error of a call that will not run, or `None` if the request was approved or is pending.
    #[must_use]
    pub fn refusal(&self) -> Option<ToolError> {
        let reason = self.decision.as_ref().and_then(|decision| decision.reason.as_ref());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        match self.state {
            ApprovalState::Approved | ApprovalState::Pending => None,
            ApprovalState::Denied => Some(ToolError::denied(Denial::Denied, format!("the user denied the call{reason}"))),
            ApprovalState::Expired => Some(ToolError::denied(Denial::Expired, "the approval request expired before a decision")),
            ApprovalState::Cancelled => {
                Some(ToolError::new(ErrorKind::Interrupted, "the approval request was cancelled because the process that made it is gone"))
            }
        }
    }

    /// Returns whether the person approved all calls to the tool in the conversation.
    #[must_use]
    pub fn is_always(&self) -> bool {
        self.request.input.is_none()
            && self.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Approve && decision.always)
    }

    /// Returns the decision as a grant for the executor, or `None` if there is no decision. A decision made in time does not expire later.
    #[must_use]
    pub fn grant(&self) -> Option<Grant> {
        let (verdict, decision) = match (self.state, &self.decision) {
            (ApprovalState::Expired, _) => (Verdict::Expired, None),
            (_, Some(decision)) => (decision.verdict, Some(decision)),
            _ => return None,
        };
        Some(Grant {
            approval_id: self.request.id,
            digest: self.request.digest,
            verdict,
            reason: decision.and_then(|decision| decision.reason.clone()),
            by: decision.map_or_else(|| "nobody".to_owned(), |decision| decision.by.to_string()),
            arguments: decision.filter(|_| self.request.input.is_none()).and_then(|decision| decision.arguments.clone()),
            given: self.request.input.as_ref().map(|needed| match (verdict, decision) {
                (Verdict::Approve, Some(decision)) => needed.give(decision.arguments.as_ref().unwrap_or(&Value::Null)),
                _ => needed.decline(),
            }),
        })
    }
}
