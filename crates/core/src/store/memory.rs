//! A store in memory. Its data is lost when the process ends.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;

use super::{
    AcceptResult, Approval, ApprovalState, CancelResult, Claim, ConversationRecord, DecisionRecord, DecisionResult, Finish, FinishResult,
    NewTask, Progress, RecoveryReport, Rows, RunCommit, RunRecord, RunState, Stop, Store, StoreError, Stored, TakenRun, Task, TaskFilter,
    TaskState, transact,
};
use crate::digest::Digest;
use crate::event::Event;
use crate::ids::{ApprovalId, CallId, ConversationId, HolderId, RunId};
use crate::message::Message;

/// A store in memory. Clones share their data.
#[derive(Clone)]
pub struct MemoryStore(Arc<Inner>);

struct Inner {
    tables: Mutex<Tables>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Tables {
    tasks: BTreeMap<CallId, Task>,
    /// Queued tasks, ordered by rank.
    queue: BTreeMap<(i64, CallId), (Timestamp, Digest)>,
    approvals: BTreeMap<ApprovalId, Approval>,
    runs: BTreeMap<RunId, RunRecord>,
    snapshots: HashMap<RunId, Value>,
    events: HashMap<RunId, Vec<Event>>,
    conversations: BTreeMap<ConversationId, ConversationRecord>,
    holders: HashMap<HolderId, Instant>,
    bodies: HashMap<Digest, Vec<u8>>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self(Arc::new(Inner { tables: Mutex::default(), changes: watch::Sender::new(0) }))
    }
}

/// Writes the number of rows.
impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.tables();
        let mut shown = f.debug_struct("MemoryStore");
        shown.field("runs", &tables.runs.len()).field("tasks", &tables.tasks.len()).field("approvals", &tables.approvals.len());
        shown.finish_non_exhaustive()
    }
}

impl MemoryStore {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.tables.lock()
    }

    fn read<T: Send + 'static>(&self, read: impl FnOnce(&Tables) -> T) -> Stored<'_, T> {
        let value = read(&self.tables());
        Box::pin(std::future::ready(Ok(value)))
    }

    fn change<T: Send + 'static>(&self, change: impl FnOnce(&mut Tables) -> Result<T, StoreError>) -> Stored<'_, T> {
        self.change_if(change, |_| true)
    }

    /// Like [`Self::change`], but announces the change only if `changed` returns true: a worker that claims no task must not wake itself.
    fn change_if<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Tables) -> Result<T, StoreError>,
        changed: fn(&T) -> bool,
    ) -> Stored<'_, T> {
        let result = change(&mut self.tables());
        if result.as_ref().is_ok_and(changed) {
            self.0.changes.send_modify(|number| *number += 1);
        }
        Box::pin(std::future::ready(result))
    }
}

fn newest<'a, T: Clone + 'a>(rows: impl DoubleEndedIterator<Item = &'a T>, wanted: impl Fn(&T) -> bool, limit: usize) -> Vec<T> {
    rows.rev().filter(|row| wanted(row)).take(limit).cloned().collect()
}

/// Implements methods of the store as one transaction over the tables each.
macro_rules! transactions {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        fn $name(&self, $($argument: $type),*) -> Stored<'_, $result> {
            self.change(|tables| transact::$name(tables, $($argument),*))
        }
    )*};
}

impl Store for MemoryStore {
    transactions! {
        accept(task: NewTask) -> AcceptResult;
        finish(ended: Vec<Finish>) -> Vec<FinishResult>;
        cancel_task(task: CallId) -> CancelResult;
        mark_read(task: CallId) -> ();
        decide(approval: ApprovalId, decision: DecisionRecord) -> DecisionResult;
        take_run(run: RunId, holder: HolderId) -> TakenRun;
        release_run(run: RunId, holder: HolderId, epoch: u64) -> ();
        commit_run(commit: RunCommit) -> u64;
        cancel_run(run: RunId) -> RunRecord;
    }

    fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop> {
        let keep = |tables: &mut Tables| {
            tables.holders.insert(holder, Instant::now() + lease);
            transact::progress(tables, holder, progress)
        };
        self.change_if(keep, |_| false)
    }

    fn recover(&self, holder: HolderId) -> Stored<'_, RecoveryReport> {
        self.change_if(|tables| transact::recover(tables, holder), |found| *found != RecoveryReport::default())
    }

    fn leave(&self, holder: HolderId) -> Stored<'_, ()> {
        self.change(|tables| {
            tables.holders.remove(&holder);
            Ok(())
        })
    }

    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>> {
        self.change_if(|tables| transact::claim(tables, &claim), |tasks| !tasks.is_empty())
    }

    fn retry_task(&self, task: CallId) -> Stored<'_, Task> {
        self.change(|tables| transact::retry_task(tables, task, CallId::mint()))
    }

    fn task(&self, task: CallId) -> Stored<'_, Option<Task>> {
        self.read(|tables| tables.tasks.get(&task).cloned())
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, Vec<Task>> {
        self.read(|tables| {
            let wanted = |task: &Task| {
                filter.state.is_none_or(|state| task.state == state)
                    && filter.conversation.is_none_or(|conversation| task.caller.conversation == Some(conversation))
                    && (!filter.unread || (task.state.is_over() && !task.read && task.caller.conversation.is_some()))
            };
            newest(tables.tasks.values(), wanted, filter.limit)
        })
    }

    fn inbox(&self, conversation: ConversationId) -> Stored<'_, Vec<Task>> {
        self.read(|tables| {
            let unread = |task: &&Task| task.state.is_over() && !task.read && task.caller.conversation == Some(conversation);
            let mut tasks: Vec<Task> = tables.tasks.values().filter(unread).cloned().collect();
            tasks.sort_by_key(|task| (task.updated, task.id));
            tasks
        })
    }

    fn add_approval(&self, approval: Approval) -> Stored<'_, ()> {
        self.change(|tables| transact::add_approval(tables, &approval))
    }

    fn approval(&self, approval: ApprovalId) -> Stored<'_, Option<Approval>> {
        self.read(|tables| tables.approvals.get(&approval).cloned())
    }

    fn approvals(&self, run: Option<RunId>, open: bool, limit: usize) -> Stored<'_, Vec<Approval>> {
        self.read(|tables| {
            let wanted = |approval: &Approval| {
                run.is_none_or(|run| approval.request.caller.run == Some(run)) && (!open || approval.state == ApprovalState::Pending)
            };
            newest(tables.approvals.values(), wanted, limit)
        })
    }

    fn run(&self, run: RunId) -> Stored<'_, Option<RunRecord>> {
        self.read(|tables| tables.runs.get(&run).cloned())
    }

    fn runs(&self, state: Option<RunState>, limit: usize) -> Stored<'_, Vec<RunRecord>> {
        self.read(|tables| newest(tables.runs.values(), |run| state.is_none_or(|state| run.state == state), limit))
    }

    fn events(&self, run: RunId, after: u64, limit: usize) -> Stored<'_, Vec<Event>> {
        self.read(|tables| {
            let events = tables.events.get(&run).into_iter().flatten();
            events.filter(|event| event.seq > after).take(limit).cloned().collect()
        })
    }

    fn conversation(&self, conversation: ConversationId) -> Stored<'_, Option<ConversationRecord>> {
        self.read(|tables| tables.conversations.get(&conversation).cloned())
    }

    fn conversations(&self, limit: usize) -> Stored<'_, Vec<ConversationRecord>> {
        self.read(|tables| {
            let mut all: Vec<&ConversationRecord> = tables.conversations.values().collect();
            all.sort_by_key(|record| std::cmp::Reverse((record.updated, record.id)));
            all.into_iter().take(limit).map(|record| ConversationRecord { messages: Vec::new(), ..record.clone() }).collect()
        })
    }

    fn put_body<'a>(&'a self, bytes: &'a [u8]) -> Stored<'a, Digest> {
        let digest = Digest::of([bytes]);
        self.change(|tables| {
            tables.bodies.entry(digest).or_insert_with(|| bytes.to_vec());
            Ok(digest)
        })
    }

    fn body(&self, digest: Digest) -> Stored<'_, Option<Vec<u8>>> {
        self.read(|tables| tables.bodies.get(&digest).cloned())
    }

    fn prune(&self, age: Duration) -> Stored<'_, usize> {
        self.change(|tables| Ok(tables.prune(age)))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

impl Tables {
    fn prune(&mut self, age: Duration) -> usize {
        let before = SignedDuration::try_from(age).ok().and_then(|age| Timestamp::now().checked_sub(age).ok()).unwrap_or(Timestamp::MIN);
        let counted = |tables: &Self| tables.runs.len() + tables.tasks.len() + tables.approvals.len() + tables.conversations.len();
        let had = counted(self);
        self.runs.retain(|_, run| !run.state.is_over() || run.updated >= before);
        self.tasks.retain(|_, task| !task.state.is_over() || task.updated >= before);
        self.approvals.retain(|_, approval| approval.decided_at.is_none_or(|when| when >= before));
        self.events.retain(|run, _| self.runs.contains_key(run));
        self.snapshots.retain(|run, _| self.runs.contains_key(run));
        let (runs, tasks) = (&self.runs, &self.tasks);
        let open = self.approvals.values().filter(|approval| approval.state == ApprovalState::Pending);
        let used = runs.values().map(|run| run.conversation_id).chain(tasks.values().filter_map(|task| task.caller.conversation));
        let used = used.chain(open.filter_map(|approval| approval.request.caller.conversation));
        let used: BTreeSet<ConversationId> = used.collect();
        self.conversations.retain(|id, conversation| conversation.updated >= before || used.contains(id));
        had - counted(self)
    }
}

impl Rows for Tables {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn task(&mut self, task: CallId) -> Result<Option<Task>, StoreError> {
        Ok(self.tasks.get(&task).cloned())
    }

    fn add_task(&mut self, task: &Task) -> Result<bool, StoreError> {
        if self.tasks.contains_key(&task.id) {
            return Ok(false);
        }
        self.put_task(task).map(|()| true)
    }

    fn put_task(&mut self, task: &Task) -> Result<(), StoreError> {
        if let Some(old) = self.tasks.insert(task.id, task.clone()) {
            self.queue.remove(&(old.rank(), old.id));
        }
        if task.state == TaskState::Queued {
            self.queue.insert((task.rank(), task.id), (task.due, task.definition));
        }
        Ok(())
    }

    fn due_tasks(&mut self, limit: usize, tools: Option<&[Digest]>) -> Result<Vec<Task>, StoreError> {
        let now = self.now();
        let fits = |(due, definition): &(Timestamp, Digest)| *due <= now && tools.is_none_or(|tools| tools.contains(definition));
        let due = self.queue.iter().filter(|(_, row)| fits(row)).take(limit);
        Ok(due.filter_map(|((_, id), _)| self.tasks.get(id).cloned()).collect())
    }

    fn running_tasks(&mut self) -> Result<Vec<Task>, StoreError> {
        Ok(self.tasks.values().filter(|task| task.state == TaskState::Running).cloned().collect())
    }

    fn approval(&mut self, approval: ApprovalId) -> Result<Option<Approval>, StoreError> {
        Ok(self.approvals.get(&approval).cloned())
    }

    fn put_approval(&mut self, approval: &Approval) -> Result<(), StoreError> {
        self.approvals.insert(approval.request.id, approval.clone());
        Ok(())
    }

    fn open_approvals(&mut self, run: Option<RunId>) -> Result<Vec<Approval>, StoreError> {
        let wanted = |approval: &&Approval| match run {
            Some(run) => approval.request.caller.run == Some(run),
            None => approval.request.expires_at.is_some() || approval.asker.is_some(),
        };
        Ok(self.approvals.values().filter(|approval| approval.state == ApprovalState::Pending).filter(wanted).cloned().collect())
    }

    fn run(&mut self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.runs.get(&run).cloned())
    }

    fn put_run(&mut self, run: &RunRecord) -> Result<(), StoreError> {
        self.runs.insert(run.id, run.clone());
        Ok(())
    }

    fn running_runs(&mut self) -> Result<Vec<RunRecord>, StoreError> {
        Ok(self.runs.values().filter(|run| run.state == RunState::Running).cloned().collect())
    }

    fn snapshot(&mut self, run: RunId) -> Result<Option<Value>, StoreError> {
        Ok(self.snapshots.get(&run).cloned())
    }

    fn put_snapshot(&mut self, run: RunId, snapshot: Option<&Value>) -> Result<(), StoreError> {
        match snapshot {
            Some(snapshot) => self.snapshots.insert(run, snapshot.clone()),
            None => self.snapshots.remove(&run),
        };
        Ok(())
    }

    fn add_event(&mut self, event: &Event) -> Result<(), StoreError> {
        self.events.entry(event.run_id).or_default().push(event.clone());
        Ok(())
    }

    fn conversation(&mut self, conversation: ConversationId) -> Result<Option<ConversationRecord>, StoreError> {
        let light = |record: &ConversationRecord| ConversationRecord { messages: Vec::new(), ..record.clone() };
        Ok(self.conversations.get(&conversation).map(light))
    }

    fn put_conversation(&mut self, conversation: &ConversationRecord) -> Result<(), StoreError> {
        let messages = self.conversations.remove(&conversation.id).map(|old| old.messages).unwrap_or_default();
        self.conversations.insert(conversation.id, ConversationRecord { messages, ..conversation.clone() });
        Ok(())
    }

    fn add_message(&mut self, conversation: ConversationId, _: usize, message: &Message) -> Result<(), StoreError> {
        let now = self.now();
        let record = self.conversations.entry(conversation).or_insert_with(|| ConversationRecord::new(conversation, now));
        record.messages.push(Arc::new(message.clone()));
        Ok(())
    }

    fn is_gone(&mut self, holder: HolderId) -> Result<bool, StoreError> {
        Ok(self.holders.get(&holder).is_none_or(|until| *until <= Instant::now()))
    }
}
