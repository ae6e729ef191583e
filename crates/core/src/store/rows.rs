//! The rows that an engine loads and stores. The transactions themselves are in [`transact`](super::transact).

use jiff::Timestamp;
use serde_json::Value;

use super::{Approval, ConversationRecord, RunRecord, StoreError, Task};
use crate::digest::Digest;
use crate::event::Event;
use crate::ids::{ApprovalId, CallId, ConversationId, HolderId, RunId};
use crate::message::Message;

type Row<T> = Result<T, StoreError>;

/// Rows inside one transaction. Every method returns the error of the engine if that fails.
#[expect(clippy::missing_errors_doc, reason = "said once for all methods")]
pub trait Rows {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// One task.
    fn task(&mut self, task: CallId) -> Row<Option<Task>>;
    /// Stores a new task. Returns false and changes nothing if there is a task with its id.
    fn add_task(&mut self, task: &Task) -> Row<bool>;
    /// Stores the state of a task. Its call, caller and definition never change.
    fn put_task(&mut self, task: &Task) -> Row<()>;
    /// Queued tasks that are due, ordered by rank.
    fn due_tasks(&mut self, limit: usize, tools: Option<&[Digest]>) -> Row<Vec<Task>>;
    /// Running tasks.
    fn running_tasks(&mut self) -> Row<Vec<Task>>;

    /// One approval request.
    fn approval(&mut self, approval: ApprovalId) -> Row<Option<Approval>>;
    /// Inserts or updates an approval request.
    fn put_approval(&mut self, approval: &Approval) -> Row<()>;
    /// Pending requests of a run; without a run, at least all that can expire or whose process can be lost.
    fn open_approvals(&mut self, run: Option<RunId>) -> Row<Vec<Approval>>;

    /// One run.
    fn run(&mut self, run: RunId) -> Row<Option<RunRecord>>;
    /// Inserts or updates a run.
    fn put_run(&mut self, run: &RunRecord) -> Row<()>;
    /// Runs that a process drives.
    fn running_runs(&mut self) -> Row<Vec<RunRecord>>;
    /// The snapshot from which a run resumes.
    fn snapshot(&mut self, run: RunId) -> Row<Option<Value>>;
    /// Stores the snapshot of a run, or removes it.
    fn put_snapshot(&mut self, run: RunId, snapshot: Option<&Value>) -> Row<()>;
    /// Appends an event to its run.
    fn add_event(&mut self, event: &Event) -> Row<()>;

    /// A conversation without its messages.
    fn conversation(&mut self, conversation: ConversationId) -> Row<Option<ConversationRecord>>;
    /// Inserts or updates a conversation without its messages.
    fn put_conversation(&mut self, conversation: &ConversationRecord) -> Row<()>;
    /// Appends a message at this index.
    fn add_message(&mut self, conversation: ConversationId, index: usize, message: &Message) -> Row<()>;

    /// Whether a process is gone: it left, or its lease expired.
    fn is_gone(&mut self, holder: HolderId) -> Row<bool>;
}
