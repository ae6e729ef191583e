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

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A process drives it.
    Running,
    /// Waits for a decision on an approval request.
    Waiting,
    /// Can be resumed; no process drives it.
    Ready,
    /// Succeeded.
    Done,
    /// Failed or reached a limit.
    Failed,
    /// Was cancelled.
    Cancelled,
}

impl RunState {
    /// Every state, once.
    pub const ALL: [Self; 6] = [Self::Running, Self::Waiting, Self::Ready, Self::Done, Self::Failed, Self::Cancelled];

    /// Whether the run has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// A run that starts.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// Its conversation, which is created if it is new.
    pub conversation: ConversationId,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The agent's name.
    pub agent: Option<Arc<str>>,
    /// The model's name.
    pub model: Arc<str>,
    /// The input of the run, shortened.
    pub input: Arc<str>,
    /// The process that drives it.
    pub holder: HolderId,
}

/// A stored run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The run that started it.
    pub parent_run_id: Option<RunId>,
    /// The agent's name.
    pub agent: Option<Arc<str>>,
    /// The model's name.
    pub model: Arc<str>,
    /// The input of the run, shortened.
    pub input: Arc<str>,
    /// Its state.
    pub state: RunState,
    /// The number of its last event.
    pub seq: u64,
    /// Fencing token: grows each time a process claims the run.
    pub epoch: u64,
    /// The process that drives it.
    pub holder: Option<HolderId>,
    /// Whether its process must stop it.
    pub cancelling: bool,
    /// When it started.
    pub created: Timestamp,
    /// When it was last stored.
    pub updated: Timestamp,
}

/// A run that a process has claimed.
#[derive(Debug, Clone)]
pub struct TakenRun {
    /// The run.
    pub record: RunRecord,
    /// The snapshot from which it resumes; `None` if it has only started.
    pub snapshot: Option<Value>,
}

/// One step of a run.
#[derive(Debug, Clone)]
pub struct RunCommit {
    /// The run.
    pub run: RunId,
    /// The epoch under which it is driven; 1 for a run that starts.
    pub epoch: u64,
    /// The new run, if it starts with this step.
    pub begin: Option<NewRun>,
    /// Its state after the step.
    pub state: RunState,
    /// The snapshot from which it resumes, without messages; `None` if it has ended.
    pub snapshot: Option<Value>,
    /// New events.
    pub events: Vec<(Timestamp, EventData)>,
    /// New messages of the conversation.
    pub messages: Vec<Arc<Message>>,
    /// Number of messages that the conversation had before.
    pub message_count: usize,
    /// New approval requests.
    pub approvals: Vec<Approval>,
    /// Tasks whose results the agent has read.
    pub read: Vec<CallId>,
    /// Definitions of all tools that the conversation may call without approval.
    pub allowed: BTreeSet<Digest>,
    /// Usage of the conversation so far.
    pub usage: Usage,
    /// State of its contexts, by name.
    pub contexts: BTreeMap<String, Value>,
}

impl RunCommit {
    /// A step that only changes the state.
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
    /// Its id.
    pub id: ConversationId,
    /// The agent of its latest run.
    pub agent: Option<Arc<str>>,
    /// Its messages. Empty in lists.
    pub messages: Vec<Arc<Message>>,
    /// Number of its messages.
    #[serde(rename = "said")]
    pub message_count: usize,
    /// Definitions of the tools that it may call without approval.
    pub allowed: BTreeSet<Digest>,
    /// Its usage.
    pub usage: Usage,
    /// State of its contexts, by name.
    pub contexts: BTreeMap<String, Value>,
    /// When it started.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
}

impl ConversationRecord {
    /// A conversation without messages.
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
