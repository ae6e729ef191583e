//! A draft: the rows of one transaction in memory.
//!
//! The transactions of `helve-core` are plain functions over [`Rows`]; they cannot wait for a server. So a transaction on PostgreSQL has
//! three steps, and the draft is what connects them:
//! 1. [`Keys::load`](super::keys::Keys::load) locks the rows that the transaction is expected to need, and puts them into a new draft.
//! 2. The function runs on the draft. Its writes are *staged*: it reads them back, and they are dropped if it fails. If it succeeds,
//!    [`Draft::run`] keeps them. Several functions can run one after the other, and each fails alone.
//! 3. [`flush`](super::flush) turns the kept rows into a few statements.
//!
//! If a function asks for a row that was not loaded, it fails, and the draft notes the key as *missing*. The transaction then starts
//! again with more keys. A row that was looked for and not found is known not to exist.
//!
//! There are two kinds of tables. A [`Table`] has rows that are read and replaced by key: tasks, approvals, runs, snapshots,
//! conversations. [`NewRows`] are only added: events and messages.

use std::collections::{BTreeMap, BTreeSet};

use helve_core::store::{Approval, ApprovalState, ConversationRecord, Rows, RunRecord, RunState, Task, TaskState};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, HolderId, Message, RunId, StoreError};
use jiff::Timestamp;
use serde_json::Value;

use super::keys::Keys;
use crate::row::Result;

/// A row was not loaded.
struct NotLoaded;

/// Rows of one table.
pub(super) struct Table<K, V> {
    /// The rows that are known; `None` for a row that does not exist.
    rows: BTreeMap<K, Option<V>>,
    /// What the function in progress has written.
    staged: BTreeMap<K, V>,
    /// Keys of the rows that exist in the database.
    stored: BTreeSet<K>,
    /// Keys of the rows to write.
    changed: BTreeSet<K>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), staged: BTreeMap::new(), stored: BTreeSet::new(), changed: BTreeSet::new() }
    }
}

impl<K: Copy + Ord, V: Clone> Table<K, V> {
    /// Adds a row that was loaded.
    pub(super) fn load(&mut self, key: K, value: V) {
        self.stored.insert(key);
        self.rows.insert(key, Some(value));
    }

    /// Notes which rows were looked for: those that were not loaded do not exist.
    pub(super) fn looked_for(&mut self, keys: &BTreeSet<K>) {
        for key in keys {
            self.rows.entry(*key).or_insert(None);
        }
    }

    /// Rows to insert, and rows to update.
    pub(super) fn written(&self) -> (Vec<&V>, Vec<&V>) {
        let row = |key: &K| self.rows.get(key).and_then(Option::as_ref);
        let (old, new): (Vec<&K>, Vec<&K>) = self.changed.iter().partition(|key| self.stored.contains(key));
        (new.into_iter().filter_map(row).collect(), old.into_iter().filter_map(row).collect())
    }

    /// Changed rows, with their keys.
    pub(super) fn changes(&self) -> impl Iterator<Item = (K, &V)> {
        self.changed.iter().filter_map(|key| Some((*key, self.rows.get(key)?.as_ref()?)))
    }

    /// Returns a row; `None` if it does not exist.
    fn get(&self, key: K) -> Result<Option<V>, NotLoaded> {
        match self.staged.get(&key) {
            Some(value) => Ok(Some(value.clone())),
            None => self.rows.get(&key).cloned().ok_or(NotLoaded),
        }
    }

    fn put(&mut self, key: K, value: V) {
        self.staged.insert(key, value);
    }

    /// All known rows that match.
    fn all(&self, matches: impl Fn(&V) -> bool) -> Vec<V> {
        let mut all: BTreeMap<K, &V> = self.rows.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?))).collect();
        all.extend(self.staged.iter().map(|(key, value)| (*key, value)));
        all.into_values().filter(|value| matches(value)).cloned().collect()
    }

    /// Keeps what is staged, or drops it.
    fn finish(&mut self, keep: bool) {
        for (key, value) in std::mem::take(&mut self.staged).into_iter().filter(|_| keep) {
            self.changed.insert(key);
            self.rows.insert(key, Some(value));
        }
    }
}

/// Rows that are only added.
pub(super) struct NewRows<T> {
    staged: Vec<T>,
    pub(super) rows: Vec<T>,
}

impl<T> Default for NewRows<T> {
    fn default() -> Self {
        Self { staged: Vec::new(), rows: Vec::new() }
    }
}

impl<T> NewRows<T> {
    /// Keeps what is staged, or drops it.
    fn finish(&mut self, keep: bool) {
        self.rows.extend(std::mem::take(&mut self.staged).into_iter().filter(|_| keep));
    }
}

/// A message, with its conversation and its position there.
pub(super) type MessageRow = (ConversationId, usize, Message);

/// The rows of one transaction.
pub(super) struct Draft {
    now: Timestamp,
    /// The server process that runs the transaction.
    pub(super) backend: i32,
    pub(super) tasks: Table<CallId, Task>,
    pub(super) approvals: Table<ApprovalId, Approval>,
    pub(super) runs: Table<RunId, RunRecord>,
    pub(super) snapshots: Table<RunId, Option<Value>>,
    pub(super) conversations: Table<ConversationId, ConversationRecord>,
    pub(super) events: NewRows<Event>,
    pub(super) messages: NewRows<MessageRow>,
    /// Runs whose pending approvals are all loaded.
    whole_runs: BTreeSet<RunId>,
    /// Processes whose state was loaded, and those of them that are alive.
    holders: BTreeSet<HolderId>,
    alive: BTreeSet<HolderId>,
    /// What was asked for and is not loaded.
    missing: Keys,
}

impl Draft {
    /// An empty draft for these keys.
    pub(super) fn new(now: Timestamp, backend: i32, keys: &Keys, alive: BTreeSet<HolderId>) -> Self {
        Self {
            now,
            backend,
            tasks: Table::default(),
            approvals: Table::default(),
            runs: Table::default(),
            snapshots: Table::default(),
            conversations: Table::default(),
            events: NewRows::default(),
            messages: NewRows::default(),
            whole_runs: keys.whole_runs.clone(),
            holders: keys.holders.clone(),
            alive,
            missing: Keys::default(),
        }
    }

    /// Runs one function on the rows, and keeps what it wrote if it succeeds.
    pub(super) fn run<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let result = work(self);
        let keep = result.is_ok();
        self.tasks.finish(keep);
        self.approvals.finish(keep);
        self.runs.finish(keep);
        self.snapshots.finish(keep);
        self.conversations.finish(keep);
        self.events.finish(keep);
        self.messages.finish(keep);
        result
    }

    /// Takes the keys of the rows that were missing; `None` if there were none.
    pub(super) fn missing(&mut self) -> Option<Keys> {
        (!self.missing.is_empty()).then(|| std::mem::take(&mut self.missing))
    }

    /// Notes a key as missing if it is not loaded.
    fn loaded<T>(&mut self, loaded: Result<T, NotLoaded>, note: impl FnOnce(&mut Keys) -> bool) -> Result<T> {
        loaded.map_err(|NotLoaded| {
            note(&mut self.missing);
            StoreError::Unavailable("a row is not loaded".to_owned())
        })
    }
}

impl Rows for Draft {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn task(&mut self, task: CallId) -> Result<Option<Task>> {
        self.loaded(self.tasks.get(task), |keys| keys.tasks.insert(task))
    }

    fn add_task(&mut self, task: &Task) -> Result<bool> {
        let new = self.task(task.id)?.is_none();
        if new {
            self.put_task(task)?;
        }
        Ok(new)
    }

    fn put_task(&mut self, task: &Task) -> Result<()> {
        self.tasks.put(task.id, task.clone());
        Ok(())
    }

    fn due_tasks(&mut self, _: usize, _: Option<&[Digest]>) -> Result<Vec<Task>> {
        Err(StoreError::Unavailable("tasks are claimed by a statement of their own".to_owned()))
    }

    /// Those that were loaded: the caller has chosen them.
    fn running_tasks(&mut self) -> Result<Vec<Task>> {
        Ok(self.tasks.all(|task| task.state == TaskState::Running))
    }

    fn approval(&mut self, approval: ApprovalId) -> Result<Option<Approval>> {
        self.loaded(self.approvals.get(approval), |keys| keys.approvals.insert(approval))
    }

    fn put_approval(&mut self, approval: &Approval) -> Result<()> {
        self.approvals.put(approval.request.id, approval.clone());
        Ok(())
    }

    /// Those of a run, or those that were loaded and may end by themselves.
    fn open_approvals(&mut self, run: Option<RunId>) -> Result<Vec<Approval>> {
        if let Some(run) = run {
            self.loaded(self.whole_runs.get(&run).copied().ok_or(NotLoaded), |keys| keys.whole_runs.insert(run))?;
        }
        Ok(self.approvals.all(|approval| {
            let may_have_ended = approval.request.expires_at.is_some() || approval.asker.is_some();
            let matches = run.map_or(may_have_ended, |run| approval.request.caller.run == Some(run));
            matches && approval.state == ApprovalState::Pending
        }))
    }

    fn run(&mut self, run: RunId) -> Result<Option<RunRecord>> {
        self.loaded(self.runs.get(run), |keys| keys.runs.insert(run))
    }

    fn put_run(&mut self, run: &RunRecord) -> Result<()> {
        self.runs.put(run.id, run.clone());
        Ok(())
    }

    /// Those that were loaded: the caller has chosen them.
    fn running_runs(&mut self) -> Result<Vec<RunRecord>> {
        Ok(self.runs.all(|run| run.state == RunState::Running))
    }

    fn snapshot(&mut self, run: RunId) -> Result<Option<Value>> {
        self.loaded(self.snapshots.get(run), |keys| keys.snapshots.insert(run)).map(Option::flatten)
    }

    fn put_snapshot(&mut self, run: RunId, snapshot: Option<&Value>) -> Result<()> {
        self.snapshots.put(run, snapshot.cloned());
        Ok(())
    }

    fn add_event(&mut self, event: &Event) -> Result<()> {
        self.events.staged.push(event.clone());
        Ok(())
    }

    fn conversation(&mut self, conversation: ConversationId) -> Result<Option<ConversationRecord>> {
        self.loaded(self.conversations.get(conversation), |keys| keys.conversations.insert(conversation))
    }

    fn put_conversation(&mut self, conversation: &ConversationRecord) -> Result<()> {
        self.conversations.put(conversation.id, conversation.clone());
        Ok(())
    }

    fn add_message(&mut self, conversation: ConversationId, place: usize, message: &Message) -> Result<()> {
        self.messages.staged.push((conversation, place, message.clone()));
        Ok(())
    }

    fn is_gone(&mut self, holder: HolderId) -> Result<bool> {
        self.loaded(self.holders.get(&holder).copied().ok_or(NotLoaded), |keys| keys.holders.insert(holder))?;
        Ok(!self.alive.contains(&holder))
    }
}
