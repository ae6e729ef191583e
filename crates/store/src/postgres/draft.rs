//! The rows of one transaction, in memory: what was loaded, and what shall be written.
//!
//! The transactions of `helve-core` run over it without waiting. One that asks for a row that was not loaded is broken off, and
//! begins again when the row is there; one that fails takes only its own changes back.

use std::collections::{BTreeMap, BTreeSet};

use helve_core::store::{Approval, ApprovalState, ConversationRecord, Rows, RunRecord, RunState, Task, TaskState};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, HolderId, Message, RunId, StoreError};
use jiff::Timestamp;
use serde_json::Value;

use super::keys::Keys;

type Row<T> = Result<T, StoreError>;

/// A row that was not loaded.
struct Unknown;

/// Rows of one table.
pub(super) struct Shelf<K, V> {
    /// What is there, as far as is known; nothing for a row that does not exist.
    rows: BTreeMap<K, Option<V>>,
    /// What the transaction in hand has put.
    staged: BTreeMap<K, V>,
    /// What was there before.
    old: BTreeSet<K>,
    /// What shall be written.
    changed: BTreeSet<K>,
}

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), staged: BTreeMap::new(), old: BTreeSet::new(), changed: BTreeSet::new() }
    }
}

impl<K: Copy + Ord, V: Clone> Shelf<K, V> {
    /// Puts a row here as it was found.
    pub(super) fn found(&mut self, key: K, value: V) {
        self.old.insert(key);
        self.rows.insert(key, Some(value));
    }

    /// Says which rows were looked for: those that were not found do not exist.
    pub(super) fn looked_for(&mut self, keys: &BTreeSet<K>) {
        for key in keys {
            self.rows.entry(*key).or_insert(None);
        }
    }

    /// What is new, and what replaces something.
    pub(super) fn written(&self) -> (Vec<&V>, Vec<&V>) {
        let row = |key: &K| self.rows.get(key).and_then(Option::as_ref);
        let (old, new): (Vec<&K>, Vec<&K>) = self.changed.iter().partition(|key| self.old.contains(key));
        (new.into_iter().filter_map(row).collect(), old.into_iter().filter_map(row).collect())
    }

    /// What changed, with its keys.
    pub(super) fn changes(&self) -> impl Iterator<Item = (K, &V)> {
        self.changed.iter().filter_map(|key| Some((*key, self.rows.get(key)?.as_ref()?)))
    }

    /// A row, or nothing where there is none; an error where that is not known.
    fn get(&self, key: K) -> Result<Option<V>, Unknown> {
        match self.staged.get(&key) {
            Some(value) => Ok(Some(value.clone())),
            None => self.rows.get(&key).cloned().ok_or(Unknown),
        }
    }

    fn put(&mut self, key: K, value: V) {
        self.staged.insert(key, value);
    }

    fn all(&self, wanted: impl Fn(&V) -> bool) -> Vec<V> {
        let mut all: BTreeMap<K, &V> = self.rows.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?))).collect();
        all.extend(self.staged.iter().map(|(key, value)| (*key, value)));
        all.into_values().filter(|value| wanted(value)).cloned().collect()
    }

    fn keep(&mut self) {
        for (key, value) in std::mem::take(&mut self.staged) {
            self.changed.insert(key);
            self.rows.insert(key, Some(value));
        }
    }
}

/// Rows that are only added.
pub(super) struct Pile<T> {
    staged: Vec<T>,
    pub(super) kept: Vec<T>,
}

impl<T> Default for Pile<T> {
    fn default() -> Self {
        Self { staged: Vec::new(), kept: Vec::new() }
    }
}

/// What was said: where, in which place, and what.
pub(super) type Said = (ConversationId, usize, Message);

/// The rows of one transaction.
pub(super) struct Draft {
    now: Timestamp,
    /// The server's process that has the transaction.
    pub(super) backend: i32,
    pub(super) tasks: Shelf<CallId, Task>,
    pub(super) approvals: Shelf<ApprovalId, Approval>,
    pub(super) runs: Shelf<RunId, RunRecord>,
    pub(super) snapshots: Shelf<RunId, Option<Value>>,
    pub(super) conversations: Shelf<ConversationId, ConversationRecord>,
    pub(super) events: Pile<Event>,
    pub(super) messages: Pile<Said>,
    /// The runs whose open requests are all here.
    stepping: BTreeSet<RunId>,
    asked: BTreeSet<HolderId>,
    alive: BTreeSet<HolderId>,
    /// What was asked for and is not here.
    missing: Keys,
}

impl Draft {
    /// A draft for these keys, of which some processes are alive.
    pub(super) fn new(now: Timestamp, backend: i32, keys: &Keys, alive: BTreeSet<HolderId>) -> Self {
        Self {
            now,
            backend,
            tasks: Shelf::default(),
            approvals: Shelf::default(),
            runs: Shelf::default(),
            snapshots: Shelf::default(),
            conversations: Shelf::default(),
            events: Pile::default(),
            messages: Pile::default(),
            stepping: keys.stepping.clone(),
            asked: keys.holders.clone(),
            alive,
            missing: Keys::default(),
        }
    }

    /// Runs one transaction over the rows. What it put is kept if it went well.
    pub(super) fn run<T>(&mut self, work: impl FnOnce(&mut Self) -> Row<T>) -> Row<T> {
        let result = work(self);
        if result.is_ok() {
            self.tasks.keep();
            self.approvals.keep();
            self.runs.keep();
            self.snapshots.keep();
            self.conversations.keep();
            self.events.kept.append(&mut self.events.staged);
            self.messages.kept.append(&mut self.messages.staged);
        } else {
            self.tasks.staged.clear();
            self.approvals.staged.clear();
            self.runs.staged.clear();
            self.snapshots.staged.clear();
            self.conversations.staged.clear();
            self.events.staged.clear();
            self.messages.staged.clear();
        }
        result
    }

    /// What must be loaded before it can go on; nothing where all was there.
    pub(super) fn missing(&mut self) -> Option<Keys> {
        (!self.missing.is_empty()).then(|| std::mem::take(&mut self.missing))
    }

    fn miss<T>(&mut self, note: impl FnOnce(&mut Keys) -> bool) -> Row<T> {
        note(&mut self.missing);
        Err(StoreError::Unavailable("a row was not loaded".to_owned()))
    }
}

impl Rows for Draft {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn task(&mut self, task: CallId) -> Row<Option<Task>> {
        match self.tasks.get(task) {
            Ok(known) => Ok(known),
            Err(Unknown) => self.miss(|keys| keys.tasks.insert(task)),
        }
    }

    fn add_task(&mut self, task: &Task) -> Row<bool> {
        let new = self.task(task.id)?.is_none();
        if new {
            self.put_task(task)?;
        }
        Ok(new)
    }

    fn put_task(&mut self, task: &Task) -> Row<()> {
        self.tasks.put(task.id, task.clone());
        Ok(())
    }

    fn due_tasks(&mut self, _: usize, _: Option<&[Digest]>) -> Row<Vec<Task>> {
        Err(StoreError::Unavailable("tasks are given out by a statement of their own".to_owned()))
    }

    /// Those that were loaded: whoever asks has chosen them.
    fn running_tasks(&mut self) -> Row<Vec<Task>> {
        Ok(self.tasks.all(|task| task.state == TaskState::Running))
    }

    fn approval(&mut self, approval: ApprovalId) -> Row<Option<Approval>> {
        match self.approvals.get(approval) {
            Ok(known) => Ok(known),
            Err(Unknown) => self.miss(|keys| keys.approvals.insert(approval)),
        }
    }

    fn put_approval(&mut self, approval: &Approval) -> Row<()> {
        self.approvals.put(approval.request.id, approval.clone());
        Ok(())
    }

    /// Those of a run, or those with an end that were loaded.
    fn open_approvals(&mut self, run: Option<RunId>) -> Row<Vec<Approval>> {
        if let Some(run) = run
            && !self.stepping.contains(&run)
        {
            return self.miss(|keys| keys.stepping.insert(run));
        }
        Ok(self.approvals.all(|approval| {
            let may_be_over = approval.request.expires_at.is_some() || approval.asker.is_some();
            let wanted = run.map_or(may_be_over, |run| approval.request.caller.run == Some(run));
            wanted && approval.state == ApprovalState::Pending
        }))
    }

    fn run(&mut self, run: RunId) -> Row<Option<RunRecord>> {
        match self.runs.get(run) {
            Ok(known) => Ok(known),
            Err(Unknown) => self.miss(|keys| keys.runs.insert(run)),
        }
    }

    fn put_run(&mut self, run: &RunRecord) -> Row<()> {
        self.runs.put(run.id, run.clone());
        Ok(())
    }

    /// Those that were loaded: whoever asks has chosen them.
    fn running_runs(&mut self) -> Row<Vec<RunRecord>> {
        Ok(self.runs.all(|run| run.state == RunState::Running))
    }

    fn snapshot(&mut self, run: RunId) -> Row<Option<Value>> {
        match self.snapshots.get(run) {
            Ok(known) => Ok(known.flatten()),
            Err(Unknown) => self.miss(|keys| keys.snapshots.insert(run)),
        }
    }

    fn put_snapshot(&mut self, run: RunId, snapshot: Option<&Value>) -> Row<()> {
        self.snapshots.put(run, snapshot.cloned());
        Ok(())
    }

    fn add_event(&mut self, event: &Event) -> Row<()> {
        self.events.staged.push(event.clone());
        Ok(())
    }

    fn conversation(&mut self, conversation: ConversationId) -> Row<Option<ConversationRecord>> {
        match self.conversations.get(conversation) {
            Ok(known) => Ok(known),
            Err(Unknown) => self.miss(|keys| keys.conversations.insert(conversation)),
        }
    }

    fn put_conversation(&mut self, conversation: &ConversationRecord) -> Row<()> {
        self.conversations.put(conversation.id, conversation.clone());
        Ok(())
    }

    fn add_message(&mut self, conversation: ConversationId, place: usize, message: &Message) -> Row<()> {
        self.messages.staged.push((conversation, place, message.clone()));
        Ok(())
    }

    fn is_gone(&mut self, holder: HolderId) -> Row<bool> {
        if !self.asked.contains(&holder) {
            return self.miss(|keys| keys.holders.insert(holder));
        }
        Ok(!self.alive.contains(&holder))
    }
}
