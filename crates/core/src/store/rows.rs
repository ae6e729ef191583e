//! What an engine must be able to load and keep. The transactions themselves are in [`transact`](super::transact).

use jiff::Timestamp;
use serde_json::Value;

use super::{Approval, ConversationRecord, RunRecord, StoreError, Task};
use crate::digest::Digest;
use crate::event::Event;
use crate::ids::{ApprovalId, CallId, ConversationId, HolderId, RunId};
use crate::message::Message;

type Row<T> = Result<T, StoreError>;

/// Rows inside one transaction. Every method fails where the engine does.
#[expect(clippy::missing_errors_doc, reason = "said once for all")]
pub trait Rows {
    /// The time, for the record.
    fn now(&self) -> Timestamp;

    /// One task.
    fn task(&mut self, task: CallId) -> Row<Option<Task>>;
    /// Keeps a new task; says no, and changes nothing, where there is one with its id.
    fn add_task(&mut self, task: &Task) -> Row<bool>;
    /// Keeps what became of a task. What it was when it was accepted never changes.
    fn put_task(&mut self, task: &Task) -> Row<()>;
    /// Queued tasks that are due, by rank.
    fn due_tasks(&mut self, limit: usize, tools: Option<&[Digest]>) -> Row<Vec<Task>>;
    /// Tasks that someone has.
    fn running_tasks(&mut self) -> Row<Vec<Task>>;

    /// One request.
    fn approval(&mut self, approval: ApprovalId) -> Row<Option<Approval>>;
    /// Keeps a request, new or not.
    fn put_approval(&mut self, approval: &Approval) -> Row<()>;
    /// Open requests: those of a run, or all that may be over by themselves, and perhaps others that do not.
    fn open_approvals(&mut self, run: Option<RunId>) -> Row<Vec<Approval>>;

    /// One run.
    fn run(&mut self, run: RunId) -> Row<Option<RunRecord>>;
    /// Keeps a run, new or not.
    fn put_run(&mut self, run: &RunRecord) -> Row<()>;
    /// Runs that someone drives.
    fn running_runs(&mut self) -> Row<Vec<RunRecord>>;
    /// How a run goes on.
    fn snapshot(&mut self, run: RunId) -> Row<Option<Value>>;
    /// Keeps how a run goes on.
    fn put_snapshot(&mut self, run: RunId, snapshot: Option<&Value>) -> Row<()>;
    /// Adds what happened.
    fn add_event(&mut self, event: &Event) -> Row<()>;

    /// A conversation without what was said.
    fn conversation(&mut self, conversation: ConversationId) -> Row<Option<ConversationRecord>>;
    /// Keeps a conversation, new or not, without what was said.
    fn put_conversation(&mut self, conversation: &ConversationRecord) -> Row<()>;
    /// Adds what was said.
    fn add_message(&mut self, conversation: ConversationId, place: usize, message: &Message) -> Row<()>;

    /// Whether a process is gone: it left, or its lease is over.
    fn is_gone(&mut self, holder: HolderId) -> Row<bool>;
}
