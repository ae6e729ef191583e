//! A stored request, and its one answer.

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

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody answered yet.
    Pending,
    /// Someone said yes.
    Approved,
    /// Someone said no.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// The run ended without an answer.
    Cancelled,
}

/// A request that is kept until it is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Approval {
    /// The call that waits, as it was shown.
    #[serde(rename = "question")]
    pub request: ApprovalRequest,
    /// The run that started the run which asks, for sub-agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run: Option<RunId>,
    /// The process in which whoever made the call waits for it: it makes the call once it is approved, unless that runs in the background,
    /// and nobody does where it is gone. Nothing where nobody waits, or a run does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<HolderId>,
    /// How the tool is defined, so that a worker can run the call.
    pub definition: Digest,
    /// The sets through which the caller has the tool, for the rules that hold when the call runs.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub sets: Arc<[Arc<str>]>,
    /// Whether the call goes into the queue in any case.
    #[serde(default)]
    pub background: bool,
    /// Whether the call may run more than once.
    #[serde(default)]
    pub idempotent: bool,
    /// Where the call goes into the queue: who goes first.
    #[serde(default)]
    pub priority: i8,
    /// Where the call goes into the queue: how long it waits at least, from the answer on.
    #[serde(default)]
    pub delay: Duration,
    /// How far it is.
    pub state: ApprovalState,
    /// The decision, once there is one.
    #[serde(rename = "reply", default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionRecord>,
    /// When it was decided, expired or cancelled.
    #[serde(rename = "answered_at", default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
}

/// A decision as the store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Yes or no.
    #[serde(rename = "decision")]
    pub verdict: Verdict,
    /// Who decided.
    pub by: Arc<str>,
    /// A word to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the tool may be called for the rest of the conversation without asking.
    #[serde(default)]
    pub always: bool,
    /// Arguments instead of those that were asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl DecisionRecord {
    /// What an approver said, for the store; `None` if there is no answer yet.
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
}

impl DecisionRecord {
    /// What a grant says to its request, for the store; `None` if it came too late to say anything.
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

/// What became of an answer.
#[derive(Debug, Clone)]
pub enum DecisionResult {
    /// It is the answer.
    Accepted(Box<Approval>),
    /// The request was answered before, or nobody waits for the answer any more.
    TooLate(Box<Approval>),
    /// There is no such request.
    Unknown,
}

impl Approval {
    /// A request that was just asked, about a tool that is defined so and runs by these rules.
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

    /// The request as programs see it: on the command line, and at a webhook.
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

    /// Takes an answer. Says whether it is the one that counts.
    pub fn decide(&mut self, decision: DecisionRecord, now: Timestamp) -> bool {
        if self.expire(now) || self.state != ApprovalState::Pending {
            return false;
        }
        self.state = if decision.verdict == Verdict::Approve { ApprovalState::Approved } else { ApprovalState::Denied };
        self.decision = Some(decision);
        self.decided_at = Some(now);
        true
    }

    /// The same, where whoever made the call waits for it in this process.
    #[must_use]
    pub fn asked_by(mut self, process: HolderId) -> Self {
        self.asker = Some(process);
        self
    }

    /// Nobody waits for the answer any more.
    pub fn give_up(&mut self, now: Timestamp) {
        (self.state, self.decided_at) = (ApprovalState::Cancelled, Some(now));
    }

    /// Ends its time, where that is over. Says whether it did.
    pub fn expire(&mut self, now: Timestamp) -> bool {
        let over = self.state == ApprovalState::Pending && self.request.expires_at.is_some_and(|end| end <= now);
        if over {
            self.state = ApprovalState::Expired;
            self.decided_at = Some(now);
        }
        over
    }

    /// Why the call will not be made; nothing where it may be, or nobody knows yet.
    #[must_use]
    pub fn refusal(&self) -> Option<ToolError> {
        let said =
            self.decision.as_ref().and_then(|decision| decision.reason.as_ref()).map(|reason| format!(": {reason}")).unwrap_or_default();
        match self.state {
            ApprovalState::Approved | ApprovalState::Pending => None,
            ApprovalState::Denied => Some(ToolError::denied(Denial::Denied, format!("the user said no{said}"))),
            ApprovalState::Expired => Some(ToolError::denied(Denial::Expired, "nobody approved the call in time")),
            ApprovalState::Cancelled => {
                Some(ToolError::new(ErrorKind::Interrupted, "the request was given up, because whoever asked it was thought to be gone"))
            }
        }
    }

    /// Whether the person also allowed other calls of the tool in the conversation.
    #[must_use]
    pub fn is_always(&self) -> bool {
        self.request.input.is_none()
            && self.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Approve && decision.always)
    }

    /// The answer as it re-enters the executor; `None` while there is none. It was given in time, however late it is read.
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
