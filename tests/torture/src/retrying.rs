//! A store for clients that retry while it is unavailable.
//!
//! A client that does not know whether a change was made makes it again. The store must then hold it once.

use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{
    AcceptResult, Approval, CancelResult, Claim, ConversationRecord, DecisionRecord, DecisionResult, Finish, FinishResult, NewTask,
    Progress, RecoveryReport, RunCommit, RunRecord, RunState, Stop, Stored, TakenRun, Task, TaskFilter,
};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, HolderId, RunId, Store, StoreError};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::log::Log;

/// Delay between retries.
const PAUSE: Duration = Duration::from_millis(20);

/// A store that asks until there is an answer.
pub(crate) struct RetryingStore {
    pub(crate) inner: Arc<dyn Store>,
    /// When calls were accepted, in microseconds since 1970.
    pub(crate) pulse: Log,
}

/// Retries until the result is not that the store is unavailable.
async fn insist<'a, T>(mut ask: impl FnMut() -> Stored<'a, T>) -> Result<T, StoreError> {
    loop {
        match ask().await {
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

macro_rules! insist {
    ($($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> Stored<'_, $out> {
            Box::pin(insist(move || self.inner.$name($($argument.clone()),*)))
        })*
    };
}

impl Store for RetryingStore {
    insist! {
        recover(holder: HolderId) -> RecoveryReport;
        leave(holder: HolderId) -> ();
        finish(ended: Vec<Finish>) -> Vec<FinishResult>;
        cancel_task(task: CallId) -> CancelResult;
        retry_task(task: CallId) -> Task;
        task(task: CallId) -> Option<Task>;
        tasks(filter: TaskFilter) -> Vec<Task>;
        inbox(conversation: ConversationId) -> Vec<Task>;
        mark_read(task: CallId) -> ();
        add_approval(approval: Approval) -> ();
        decide(approval: ApprovalId, decision: DecisionRecord) -> DecisionResult;
        approval(approval: ApprovalId) -> Option<Approval>;
        approvals(run: Option<RunId>, open: bool, limit: usize) -> Vec<Approval>;
        take_run(run: RunId, holder: HolderId) -> TakenRun;
        release_run(run: RunId, holder: HolderId, epoch: u64) -> ();
        commit_run(commit: RunCommit) -> u64;
        cancel_run(run: RunId) -> RunRecord;
        run(run: RunId) -> Option<RunRecord>;
        runs(state: Option<RunState>, limit: usize) -> Vec<RunRecord>;
        events(run: RunId, after: u64, limit: usize) -> Vec<Event>;
        conversation(conversation: ConversationId) -> Option<ConversationRecord>;
        conversations(limit: usize) -> Vec<ConversationRecord>;
        body(digest: Digest) -> Option<Vec<u8>>;
        prune(age: Duration) -> usize;
    }

    fn accept(&self, task: NewTask) -> Stored<'_, AcceptResult> {
        Box::pin(async move {
            let accepted = insist(|| self.inner.accept(task.clone())).await?;
            self.pulse.add(&Timestamp::now().as_microsecond());
            Ok(accepted)
        })
    }

    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>> {
        Box::pin(insist(move || self.inner.claim(Claim { ..claim })))
    }

    fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop> {
        Box::pin(insist(move || self.inner.keep(holder, lease, progress)))
    }

    fn put_body<'a>(&'a self, bytes: &'a [u8]) -> Stored<'a, Digest> {
        Box::pin(insist(move || self.inner.put_body(bytes)))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}
