//! The interface to an engine, which loads and stores rows. The transactions are in [`transact`](super::transact).

use jiff::Timestamp;
use serde_json::Value;

use super::{Approval, ConversationRecord, RunRecord, StoreError, Task};
use crate::digest::Digest;
use crate::event::Event;
use crate::ids::{ApprovalId, CallId, ConversationId, HolderId, RunId};
use crate::message::Message;

type Row<T> = Result<T, StoreError>;

/// Access to rows inside one transaction. Every method returns the engine's error if the engine fails.
#[expect(clippy::missing_errors_doc, reason = "said once for all methods")]
pub trait Rows {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns the task with this id, if it exists.
    fn task(&mut self, task: CallId) -> Row<Option<Task>>;
    /// Stores a new task. Returns false, without a change, if there is already a task with this id.
    fn add_task(&mut self, task: &Task) -> Row<bool>;
    /// Stores the state of a task. The call, caller and definition of a task never change.
    fn put_task(&mut self, task: &Task) -> Row<()>;
    /// Returns at most `limit` queued tasks that are due, ordered by rank; only those whose definition is in `tools` if given.
    fn due_tasks(&mut self, limit: usize, tools: Option<&[Digest]>) -> Row<Vec<Task>>;
    /// Returns all running tasks.
    fn running_tasks(&mut self) -> Row<Vec<Task>>;

    /// Returns the approval request with this id, if it exists.
    fn approval(&mut self, approval: ApprovalId) -> Row<Option<Approval>>;
    /// Inserts or updates an approval request.
    fn put_approval(&mut self, approval: &Approval) -> Row<()>;
    /// Returns the pending requests of a run. Without a run, returns at least all requests that can expire or whose process can be lost.
    fn open_approvals(&mut self, run: Option<RunId>) -> Row<Vec<Approval>>;

    /// Returns the run with this id, if it exists.
    fn run(&mut self, run: RunId) -> Row<Option<RunRecord>>;
    /// Inserts or updates a run.
    fn put_run(&mut self, run: &RunRecord) -> Row<()>;
    /// Returns all runs that a process drives.
    fn running_runs(&mut self) -> Row<Vec<RunRecord>>;
    /// Returns the snapshot from which a run resumes.
    fn snapshot(&mut self, run: RunId) -> Row<Option<Value>>;
    /// Stores the snapshot of a run, or deletes it if `None`.
    fn put_snapshot(&mut self, run: RunId, snapshot: Option<&Value>) -> Row<()>;
    /// Appends an event to its run.
    fn add_event(&mut self, event: &Event) -> Row<()>;

    /// Returns the conversation with this id, if it exists, without its messages.
    fn conversation(&mut self, conversation: ConversationId) -> Row<Option<ConversationRecord>>;
    /// Inserts or updates a conversation, except for its messages.
    fn put_conversation(&mut self, conversation: &ConversationRecord) -> Row<()>;
    /// Appends a message to a conversation. `index` is the number of messages so far.
    fn add_message(&mut self, conversation: ConversationId, index: usize, message: &Message) -> Row<()>;

    /// Returns whether a process is gone: it ended its lease, or the lease expired.
    fn is_gone(&mut self, holder: HolderId) -> Row<bool>;
}
