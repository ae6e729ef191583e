//! A draft: the rows of one transaction in memory.
//!
//! The transactions of `helve-core` are synchronous functions over [`Rows`], so they cannot wait for a server. A transaction on PostgreSQL
//! therefore has three steps, which share a draft:
//! 1. [`Keys::load`](super::keys::Keys::load) locks the rows that the transaction is expected to need, and puts them into a new draft.
//! 2. The function runs on the draft. Its writes are *staged*: the function can read them back. [`Draft::run`] keeps staged writes if
//!    the function succeeds, and drops them if it fails. Several functions can run one after the other; each can fail separately.
//! 3. [`flush`](super::flush) turns the changed rows into a few statements.
//!
//! If a function reads a row that was not loaded, the function fails, and the draft records the key as *missing*. The transaction then
//! starts again with more keys. A row that was requested and not found does not exist.
//!
//! There are two kinds of tables. A [`Table`] has rows that are read and replaced by key: tasks, approvals, runs, snapshots and
//! conversations. Rows of [`NewRows`] are only added: events and messages.

use std::collections::{BTreeMap, BTreeSet};

use helve_core::store::{Approval, ApprovalState, ConversationRecord, Rows, RunRecord, RunState, Task, TaskState};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, HolderId, Message, RunId, StoreError};
use jiff::Timestamp;
use serde_json::Value;

use super::keys::Keys;
use crate::row::Result;

/// The error for a row that was not loaded, so that it is unknown whether the row exists.
struct NotLoaded;

/// The rows of one table that a transaction has loaded or changed.
pub(super) struct Table<K, V> {
    /// The loaded and changed rows; `None` for a row that does not exist.
    rows: BTreeMap<K, Option<V>>,
    /// The rows that the current function has written.
    staged: BTreeMap<K, V>,
    /// Keys of the rows that exist in the database.
    stored: BTreeSet<K>,
    /// Keys of the rows that must be written to the database.
    changed: BTreeSet<K>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), staged: BTreeMap::new(), stored: BTreeSet::new(), changed: BTreeSet::new() }
    }
}

impl<K: Copy + Ord, V: Clone> Table<K, V> {
    /// Adds a row that was loaded from the database.
    pub(super) fn load(&mut self, key: K, value: V) {
        self.stored.insert(key);
        self.rows.insert(key, Some(value));
    }

    /// Marks the rows with these keys as not existing, except those that were loaded.
    pub(super) fn looked_for(&mut self, keys: &BTreeSet<K>) {
        for key in keys {
            self.rows.entry(*key).or_insert(None);
        }
    }

    /// Returns the rows to insert, and the rows to update.
    pub(super) fn written(&self) -> (Vec<&V>, Vec<&V>) {
        let row = |key: &K| self.rows.get(key).and_then(Option::as_ref);
        let (old, new): (Vec<&K>, Vec<&K>) = self.changed.iter().partition(|key| self.stored.contains(key));
        (new.into_iter().filter_map(row).collect(), old.into_iter().filter_map(row).collect())
    }

    /// Returns the changed rows with their keys.
    pub(super) fn changes(&self) -> impl Iterator<Item = (K, &V)> {
        self.changed.iter().filter_map(|key| Some((*key, self.rows.get(key)?.as_ref()?)))
    }

    /// Returns a row, or `None` if the row does not exist. Fails if the row was not loaded.
    fn get(&self, key: K) -> Result<Option<V>, NotLoaded> {
        match self.staged.get(&key) {
            Some(value) => Ok(Some(value.clone())),
            None => self.rows.get(&key).cloned().ok_or(NotLoaded),
        }
    }

    fn put(&mut self, key: K, value: V) {
        self.staged.insert(key, value);
    }

    /// Returns all loaded and staged rows that match.
    fn all(&self, matches: impl Fn(&V) -> bool) -> Vec<V> {
        let mut all: BTreeMap<K, &V> = self.rows.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?))).collect();
        all.extend(self.staged.iter().map(|(key, value)| (*key, value)));
        all.into_values().filter(|value| matches(value)).cloned().collect()
    }

    /// Keeps the staged rows if `keep` is set; drops them otherwise.
    fn finish(&mut self, keep: bool) {
        for (key, value) in std::mem::take(&mut self.staged).into_iter().filter(|_| keep) {
            self.changed.insert(key);
            self.rows.insert(key, Some(value));
        }
    }
}

/// Rows of a table to which rows are only added.
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
    /// Keeps the staged rows if `keep` is set; drops them otherwise.
    fn finish(&mut self, keep: bool) {
        self.rows.extend(std::mem::take(&mut self.staged).into_iter().filter(|_| keep));
    }
}

/// A message with its conversation and its index in the conversation.
pub(super) type MessageRow = (ConversationId, usize, Message);

/// The rows that one transaction has loaded and changed.
pub(super) struct Draft {
    now: Timestamp,
    /// The process id of the server backend that runs the transaction.
    pub(super) backend: i32,
    pub(super) tasks: Table<CallId, Task>,
    pub(super) approvals: Table<ApprovalId, Approval>,
    pub(super) runs: Table<RunId, RunRecord>,
    pub(super) snapshots: Table<RunId, Option<Value>>,
    pub(super) conversations: Table<ConversationId, ConversationRecord>,
    pub(super) events: NewRows<Event>,
    pub(super) messages: NewRows<MessageRow>,
    /// The runs whose pending approval requests are all loaded.
    whole_runs: BTreeSet<RunId>,
    /// The processes whose leases were loaded.
    holders: BTreeSet<HolderId>,
    /// Those of `holders` whose leases have not expired.
    alive: BTreeSet<HolderId>,
    /// Keys of rows that a function needed and that were not loaded.
    missing: Keys,
}

impl Draft {
    /// Creates an empty draft, to which [`Keys::load`] adds the rows.
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

    /// Runs one function on the rows. Keeps the rows that it wrote if it succeeds, and drops them if it fails.
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

    /// Takes the keys of the missing rows. Returns `None` if there are none.
    pub(super) fn missing(&mut self) -> Option<Keys> {
        (!self.missing.is_empty()).then(|| std::mem::take(&mut self.missing))
    }

    /// Records the key of a missing row with `note`, if the row was not loaded.
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

    // Returns loaded rows only: the caller has selected which rows to load.
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

    // Without a run, returns only loaded requests: the caller has selected which rows to load.
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

    // Returns loaded rows only: the caller has selected which rows to load.
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
