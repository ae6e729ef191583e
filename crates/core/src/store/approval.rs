//! A stored question, and its one answer.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::approval::{Decision, Grant, Question};
use crate::approver::Answered;
use crate::digest::Digest;
use crate::error::{Denial, ErrorKind, ToolError};
use crate::ids::{HolderId, RunId};
use crate::rules::{Mode, Rules};

/// How far a question is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl ApprovalState {
    /// As it is written everywhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A question that is kept until it is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Approval {
    /// What is asked.
    pub question: Question,
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
    /// What was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Yes or no.
    pub decision: Decision,
    /// Who answers.
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

impl Reply {
    /// What an approver said, for the store; `None` if there is no answer yet.
    #[must_use]
    pub fn of(answered: &Answered, by: &str) -> Option<Self> {
        let reply = |decision| Self { decision, by: by.into(), reason: None, always: false, arguments: None };
        Some(match answered {
            Answered::Later | Answered::Expired => return None,
            Answered::Approve => reply(Decision::Approve),
            Answered::Always => Self { always: true, ..reply(Decision::Approve) },
            Answered::Deny { reason } => Self { reason: reason.clone(), ..reply(Decision::Deny) },
            Answered::Edit(arguments) => Self { arguments: Some(arguments.clone()), ..reply(Decision::Approve) },
        })
    }
}

impl Reply {
    /// What a grant says to its question, for the store; `None` if it came too late to say anything.
    #[must_use]
    pub fn of_grant(grant: &Grant, question: &Question) -> Option<Self> {
        let written = grant.given.as_ref().and_then(|given| given.answers.clone()).map(|mut answers| {
            let requests = question.input.as_ref().map(|needed| needed.requests.as_slice()).unwrap_or_default();
            match requests {
                [only] => answers.remove(&only.key).unwrap_or_default(),
                _ => Value::Object(answers),
            }
        });
        (grant.decision != Decision::Expired).then(|| Self {
            decision: grant.decision,
            by: grant.by.as_str().into(),
            reason: grant.reason.clone(),
            always: false,
            arguments: grant.arguments.clone().or(written),
        })
    }
}

/// What became of an answer.
#[derive(Debug, Clone)]
pub enum Answering {
    /// It is the answer.
    Won(Box<Approval>),
    /// The question was answered before, or nobody waits for the answer any more.
    TooLate(Box<Approval>),
    /// There is no such question.
    Unknown,
}

impl Approval {
    /// A question that was just asked, about a tool that is defined so and runs by these rules.
    #[must_use]
    pub fn new(question: Question, definition: Digest, rules: &Rules) -> Self {
        Self {
            question,
            parent_run: None,
            asker: None,
            definition,
            sets: Arc::from([]),
            background: rules.mode == Mode::Background,
            idempotent: rules.idempotent,
            priority: rules.priority,
            delay: rules.delay,
            state: ApprovalState::Pending,
            reply: None,
            answered_at: None,
        }
    }

    /// The question as programs see it: on the command line, and at a webhook.
    #[must_use]
    pub fn for_programs(&self) -> Value {
        let question = &self.question;
        json!({
            "id": question.id,
            "call_id": question.call.id,
            "tool": question.tool,
            "arguments": question.call.arguments,
            "digest": question.digest,
            "reason": question.reason,
            "state": self.state,
            "agent": question.caller.agent,
            "run_id": question.caller.run,
            "conversation_id": question.caller.conversation,
            "parent_run_id": self.parent_run,
            "asked_at": question.asked_at,
            "expires_at": question.expires_at,
            "input": question.input.as_ref().map(|needed| json!({"requests": needed.requests, "schema": needed.schema()})),
            "answered_at": self.answered_at,
            "answer": self.reply,
        })
    }

    /// Takes an answer. Says whether it is the one that counts.
    pub fn answer(&mut self, reply: Reply, now: Timestamp) -> bool {
        if self.expire(now) || self.state != ApprovalState::Pending {
            return false;
        }
        self.state = if reply.decision == Decision::Approve { ApprovalState::Approved } else { ApprovalState::Denied };
        self.reply = Some(reply);
        self.answered_at = Some(now);
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
        (self.state, self.answered_at) = (ApprovalState::Cancelled, Some(now));
    }

    /// Ends its time, where that is over. Says whether it did.
    pub fn expire(&mut self, now: Timestamp) -> bool {
        let over = self.state == ApprovalState::Pending && self.question.expires_at.is_some_and(|end| end <= now);
        if over {
            self.state = ApprovalState::Expired;
            self.answered_at = Some(now);
        }
        over
    }

    /// Why the call will not be made; nothing where it may be, or nobody knows yet.
    #[must_use]
    pub fn refusal(&self) -> Option<ToolError> {
        let said = self.reply.as_ref().and_then(|reply| reply.reason.as_ref()).map(|reason| format!(": {reason}")).unwrap_or_default();
        match self.state {
            ApprovalState::Approved | ApprovalState::Pending => None,
            ApprovalState::Denied => Some(ToolError::denied(Denial::Denied, format!("the user said no{said}"))),
            ApprovalState::Expired => Some(ToolError::denied(Denial::Expired, "nobody approved the call in time")),
            ApprovalState::Cancelled => {
                Some(ToolError::new(ErrorKind::Interrupted, "the question was given up, because whoever asked it was thought to be gone"))
            }
        }
    }

    /// Whether the person also allowed other calls of the tool in the conversation.
    #[must_use]
    pub fn is_always(&self) -> bool {
        self.question.input.is_none() && self.reply.as_ref().is_some_and(|reply| reply.decision == Decision::Approve && reply.always)
    }

    /// The answer as it re-enters the executor; `None` while there is none. It was given in time, however late it is read.
    #[must_use]
    pub fn grant(&self) -> Option<Grant> {
        let (decision, reply) = match (self.state, &self.reply) {
            (ApprovalState::Expired, _) => (Decision::Expired, None),
            (_, Some(reply)) => (reply.decision, Some(reply)),
            _ => return None,
        };
        Some(Grant {
            approval_id: self.question.id,
            digest: self.question.digest,
            decision,
            reason: reply.and_then(|reply| reply.reason.clone()),
            by: reply.map_or_else(|| "nobody".to_owned(), |reply| reply.by.to_string()),
            arguments: reply.filter(|_| self.question.input.is_none()).and_then(|reply| reply.arguments.clone()),
            given: self.question.input.as_ref().map(|needed| match (decision, reply) {
                (Decision::Approve, Some(reply)) => needed.give(reply.arguments.as_ref().unwrap_or(&Value::Null)),
                _ => needed.decline(),
            }),
        })
    }
}
