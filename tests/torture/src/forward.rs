//! Forwards methods of a store to an inner one.

/// Passes these methods on to `self.inner`.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> Stored<'_, $out> {
            self.inner.$name($($argument),*)
        })*
    };
}

/// Forwards the methods that neither a witness nor a fault changes, except for leases.
macro_rules! forward_most {
    () => {
        $crate::forward::forward! {
            recover(holder: HolderId) -> RecoveryReport;
            leave(holder: HolderId) -> ();
            cancel_task(task: CallId) -> CancelResult;
            retry_task(task: CallId) -> Task;
            tasks(filter: TaskFilter) -> Vec<Task>;
            inbox(conversation: ConversationId) -> Vec<Task>;
            mark_read(task: CallId) -> ();
            approval(approval: ApprovalId) -> Option<Approval>;
            approvals(run: Option<RunId>, open: bool, limit: usize) -> Vec<Approval>;
            take_run(run: RunId, holder: HolderId) -> TakenRun;
            release_run(run: RunId, holder: HolderId, epoch: u64) -> ();
            cancel_run(run: RunId) -> RunRecord;
            run(run: RunId) -> Option<RunRecord>;
            runs(state: Option<RunState>, limit: usize) -> Vec<RunRecord>;
            conversation(conversation: ConversationId) -> Option<ConversationRecord>;
            conversations(limit: usize) -> Vec<ConversationRecord>;
            body(digest: Digest) -> Option<Vec<u8>>;
            prune(age: Duration) -> usize;
        }

        fn put_body<'a>(&'a self, bytes: &'a [u8]) -> Stored<'a, Digest> {
            self.inner.put_body(bytes)
        }

        fn changes(&self) -> watch::Receiver<u64> {
            self.inner.changes()
        }
    };
}

/// Like `forward_most`, and leases.
macro_rules! forward_the_rest {
    () => {
        $crate::forward::forward_most!();

        fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop> {
            self.inner.keep(holder, lease, progress)
        }
    };
}

pub(crate) use {forward, forward_most, forward_the_rest};
