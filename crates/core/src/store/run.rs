//! Stored runs and conversations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval::Approval;
use crate::digest::Digest;
use crate::event::EventData;
use crate::ids::{CallId, ConversationId, HolderId, RunId};
use crate::message::Message;
use crate::model::Usage;

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A process drives the run.
    Running,
    /// The run waits for a decision on an approval request.
    Waiting,
    /// No process drives the run; it can be resumed.
    Ready,
    /// The run succeeded.
    Done,
    /// The run failed or reached a limit.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl RunState {
    /// All states.
    pub const ALL: [Self; 6] = [Self::Running, Self::Waiting, Self::Ready, Self::Done, Self::Failed, Self::Cancelled];

    /// Returns whether the run has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// The data of a run that starts.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The id of the run.
    pub id: RunId,
    /// The conversation of the run. The store creates the conversation if it is new.
    pub conversation: ConversationId,
    /// The run that started this one; only for sub-agents.
    pub parent: Option<RunId>,
    /// The agent's name.
    pub agent: Option<Arc<str>>,
    /// The model's name.
    pub model: Arc<str>,
    /// The input of the run, shortened.
    pub input: Arc<str>,
    /// The process that drives the run.
    pub holder: HolderId,
}

/// A stored run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRecord {
    /// The id of the run.
    pub id: RunId,
    /// The conversation of the run.
    pub conversation_id: ConversationId,
    /// The run that started this one; only for sub-agents.
    pub parent_run_id: Option<RunId>,
    /// The agent's name.
    pub agent: Option<Arc<str>>,
    /// The model's name.
    pub model: Arc<str>,
    /// The input of the run, shortened.
    pub input: Arc<str>,
    /// The state of the run.
    pub state: RunState,
    /// The number of the run's last event.
    pub seq: u64,
    /// Fencing token, which grows each time a process claims the run.
    pub epoch: u64,
    /// The process that drives the run.
    pub holder: Option<HolderId>,
    /// Whether the process that drives the run must stop it.
    pub cancelling: bool,
    /// When the run started.
    pub created: Timestamp,
    /// When the run was last stored.
    pub updated: Timestamp,
}

/// A run that a process has claimed.
#[derive(Debug, Clone)]
pub struct TakenRun {
    /// The claimed run, with its new epoch.
    pub record: RunRecord,
    /// The snapshot from which the run resumes; `None` if the run has stored none yet.
    pub snapshot: Option<Value>,
}

/// One step of a run, stored in one transaction.
#[derive(Debug, Clone)]
pub struct RunCommit {
    /// The id of the run.
    pub run: RunId,
    /// The epoch under which the process drives the run; 1 for a run that starts.
    pub epoch: u64,
    /// The new run, if this is its first step.
    pub begin: Option<NewRun>,
    /// The state of the run after the step.
    pub state: RunState,
    /// The snapshot from which the run resumes, without messages; `None` if the run has ended.
    pub snapshot: Option<Value>,
    /// The events of this step, with their times.
    pub events: Vec<(Timestamp, EventData)>,
    /// The messages that this step adds to the conversation.
    pub messages: Vec<Arc<Message>>,
    /// Number of messages of the conversation before this step.
    pub message_count: usize,
    /// The approval requests of this step.
    pub approvals: Vec<Approval>,
    /// The tasks whose results the agent has read.
    pub read: Vec<CallId>,
    /// Digests of the definitions of all tools that the conversation may call without approval.
    pub allowed: BTreeSet<Digest>,
    /// Tokens and cost of the conversation so far.
    pub usage: Usage,
    /// The state of the conversation's contexts, by name.
    pub contexts: BTreeMap<String, Value>,
}

impl RunCommit {
    /// Creates a step that only changes the state.
    #[must_use]
    pub fn new(run: RunId, epoch: u64, state: RunState) -> Self {
        Self {
            run,
            epoch,
            begin: None,
            state,
            snapshot: None,
            events: Vec::new(),
            messages: Vec::new(),
            message_count: 0,
            approvals: Vec::new(),
            read: Vec::new(),
            allowed: BTreeSet::new(),
            usage: Usage::default(),
            contexts: BTreeMap::new(),
        }
    }
}

/// A stored conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConversationRecord {
    /// The id of the conversation.
    pub id: ConversationId,
    /// The name of the agent of the latest run.
    pub agent: Option<Arc<str>>,
    /// The messages of the conversation; empty in lists.
    pub messages: Vec<Arc<Message>>,
    /// Number of messages.
    #[serde(rename = "said")]
    pub message_count: usize,
    /// Digests of the definitions of all tools that the conversation may call without approval.
    pub allowed: BTreeSet<Digest>,
    /// Tokens and cost of the conversation so far.
    pub usage: Usage,
    /// The state of the conversation's contexts, by name.
    pub contexts: BTreeMap<String, Value>,
    /// When the conversation started.
    pub created: Timestamp,
    /// When the conversation last changed.
    pub updated: Timestamp,
}

impl ConversationRecord {
    /// Creates a conversation without messages.
    #[must_use]
    pub fn new(id: ConversationId, now: Timestamp) -> Self {
        Self {
            id,
            agent: None,
            messages: Vec::new(),
            message_count: 0,
            allowed: BTreeSet::new(),
            usage: Usage::default(),
            contexts: BTreeMap::new(),
            created: now,
            updated: now,
        }
    }
}
