//! Runs and conversations as they are recorded.

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

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A process drives it.
    Running,
    /// It waits for people.
    Waiting,
    /// It can go on, and nobody drives it.
    Ready,
    /// It ended well.
    Done,
    /// It broke off, or ran into a limit.
    Failed,
    /// Someone cancelled it.
    Cancelled,
}

impl RunState {
    /// Every state, once.
    pub const ALL: [Self; 6] = [Self::Running, Self::Waiting, Self::Ready, Self::Done, Self::Failed, Self::Cancelled];

    /// Whether nothing more will happen in it.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// A run that begins.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Names it.
    pub id: RunId,
    /// Its conversation, which is begun where it is new.
    pub conversation: ConversationId,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The agent's name.
    pub agent: Option<Arc<str>>,
    /// The model's name.
    pub model: Arc<str>,
    /// What it was asked, shortened.
    pub input: Arc<str>,
    /// The process that drives it.
    pub holder: HolderId,
}

/// A run as it is recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRecord {
    /// Names it.
    pub id: RunId,
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The run that started it.
    pub parent_run_id: Option<RunId>,
    /// The agent's name.
    pub agent: Option<Arc<str>>,
    /// The model's name.
    pub model: Arc<str>,
    /// What it was asked, shortened.
    pub input: Arc<str>,
    /// How far it is.
    pub state: RunState,
    /// The number of its last event.
    pub seq: u64,
    /// Counts who drove it.
    pub epoch: u64,
    /// Who drives it.
    pub holder: Option<HolderId>,
    /// Whether its process shall stop.
    pub cancelling: bool,
    /// When it began.
    pub created: Timestamp,
    /// When it was recorded last.
    pub updated: Timestamp,
}

/// A run that a process may drive.
#[derive(Debug, Clone)]
pub struct TakenRun {
    /// What is known of it.
    pub record: RunRecord,
    /// How it goes on; nothing where it has only begun.
    pub snapshot: Option<Value>,
}

/// One step of a run.
#[derive(Debug, Clone)]
pub struct RunCommit {
    /// The run.
    pub run: RunId,
    /// The epoch under which it is driven; 1 for a run that begins.
    pub epoch: u64,
    /// What it is, where it begins with this step.
    pub begin: Option<NewRun>,
    /// How far it is now.
    pub state: RunState,
    /// How it goes on, without what was said; nothing where it is over.
    pub snapshot: Option<Value>,
    /// What happened.
    pub events: Vec<(Timestamp, EventData)>,
    /// What was said since, and how much was said before.
    pub messages: Vec<Arc<Message>>,
    /// How many messages the conversation had before these.
    pub said: usize,
    /// What people are asked.
    pub asked: Vec<Approval>,
    /// The tasks whose results the agent was told.
    pub heard: Vec<CallId>,
    /// What the conversation may do without asking, in all.
    pub allowed: BTreeSet<Digest>,
    /// What the conversation cost so far.
    pub usage: Usage,
    /// What its contexts remember.
    pub contexts: BTreeMap<String, Value>,
}

impl RunCommit {
    /// A step that says how far a run is, and nothing else.
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
            said: 0,
            asked: Vec::new(),
            heard: Vec::new(),
            allowed: BTreeSet::new(),
            usage: Usage::default(),
            contexts: BTreeMap::new(),
        }
    }
}

/// A conversation as it is recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConversationRecord {
    /// Names it.
    pub id: ConversationId,
    /// The agent that spoke last in it.
    pub agent: Option<Arc<str>>,
    /// What was said. Left out in lists.
    pub messages: Vec<Arc<Message>>,
    /// How much was said.
    pub said: usize,
    /// What was allowed for all of it.
    pub allowed: BTreeSet<Digest>,
    /// What it cost.
    pub usage: Usage,
    /// What its contexts remember.
    pub contexts: BTreeMap<String, Value>,
    /// When it began.
    pub created: Timestamp,
    /// When someone spoke last.
    pub updated: Timestamp,
}

impl ConversationRecord {
    /// A conversation in which nothing was said yet.
    #[must_use]
    pub fn new(id: ConversationId, now: Timestamp) -> Self {
        Self {
            id,
            agent: None,
            messages: Vec::new(),
            said: 0,
            allowed: BTreeSet::new(),
            usage: Usage::default(),
            contexts: BTreeMap::new(),
            created: now,
            updated: now,
        }
    }
}
