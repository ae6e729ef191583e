//! A store without secrets: replaces secrets with placeholders when writing, and restores them when reading.
//!
//! This covers all data from which work resumes: calls, approval requests, runs, conversations. Events, results and progress are only shown
//! to people, so secrets in them are masked permanently.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use super::texts::{Texts, mask_event};
use super::{
    AcceptResult, Approval, CancelResult, Claim, ConversationRecord, DecisionRecord, DecisionResult, Finish, FinishResult, NewTask,
    Progress, RecoveryReport, RunCommit, RunRecord, RunState, Stop, Store, Stored, TakenRun, Task, TaskEnd, TaskFilter,
};
use crate::digest::Digest;
use crate::event::Event;
use crate::ids::{ApprovalId, CallId, ConversationId, HolderId, RunId};
use crate::secret::{Redactor, Rewrite, Seal, Unseal};

/// A wrapper that keeps secrets out of a store.
pub struct SealedStore {
    inner: Arc<dyn Store>,
    secrets: OnceLock<Secrets>,
    /// Used until [`Self::use_secrets`] is called: no secrets.
    none: Secrets,
}

#[derive(Default)]
struct Secrets {
    redactor: Redactor,
    /// Whether secrets are stored in plain text.
    are_kept: bool,
}

impl std::fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealedStore").finish_non_exhaustive()
    }
}

impl SealedStore {
    /// Wraps a store. No secrets are known yet.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, secrets: OnceLock::new(), none: Secrets::default() }
    }

    /// Sets the secrets, and whether to store them in plain text nevertheless. Only the first call has an effect.
    pub fn use_secrets(&self, redactor: &Redactor, are_kept: bool) {
        self.secrets.get_or_init(|| Secrets { redactor: redactor.clone(), are_kept });
    }

    fn secrets(&self) -> &Secrets {
        self.secrets.get().unwrap_or(&self.none)
    }

    fn sealed<T: Texts>(&self, mut value: T) -> T {
        let Secrets { redactor, are_kept } = self.secrets();
        value.rewrite(&Seal { redactor, keeps_secrets: *are_kept });
        value
    }

    fn unsealed<T: Texts>(&self, mut value: T) -> T {
        value.rewrite(&Unseal(&self.secrets().redactor));
        value
    }

    /// Masks secrets permanently, unless secrets are stored in plain text.
    fn mask(&self, mask: impl FnOnce(&Redactor)) {
        let Secrets { redactor, are_kept } = self.secrets();
        if !are_kept {
            mask(redactor);
        }
    }

    /// Restores the secrets of a task. In the inner store, consent covers the call with placeholders, because retries and approvals create
    /// it there.
    fn unsealed_task(&self, task: Task) -> Task {
        let call = self.unsealed(task.call.clone());
        Task { consent: task.consent.map(|consent| consent.respelled(&task.call, &call, task.definition)), call, ..task }
    }

    fn unsealed_tasks(&self, tasks: Vec<Task>) -> Vec<Task> {
        tasks.into_iter().map(|task| self.unsealed_task(task)).collect()
    }

    fn unsealed_conversation(&self, record: ConversationRecord) -> ConversationRecord {
        ConversationRecord { messages: self.unsealed(record.messages), contexts: self.unsealed(record.contexts), ..record }
    }

    fn sealed_commit(&self, mut commit: RunCommit) -> RunCommit {
        self.mask(|redactor| {
            commit.begin.iter_mut().for_each(|begin| begin.input.rewrite(redactor));
            commit.events.iter_mut().for_each(|(_, event)| mask_event(event, redactor));
        });
        RunCommit {
            snapshot: self.sealed(commit.snapshot),
            messages: self.sealed(commit.messages),
            approvals: self.sealed(commit.approvals),
            contexts: self.sealed(commit.contexts),
            ..commit
        }
    }
}

/// Reads a value and restores its secrets.
macro_rules! read {
    ($future:expr, $unseal:expr) => {{
        let future = $future;
        Box::pin(async move { future.await.map($unseal) })
    }};
}

/// Implements methods whose values contain no secrets.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        fn $name(&self, $($argument: $type),*) -> Stored<'_, $result> {
            self.inner.$name($($argument),*)
        }
    )*};
}

impl Store for SealedStore {
    forward! {
        recover(holder: HolderId) -> RecoveryReport;
        leave(holder: HolderId) -> ();
        cancel_task(task: CallId) -> CancelResult;
        mark_read(task: CallId) -> ();
        release_run(run: RunId, holder: HolderId, epoch: u64) -> ();
        cancel_run(run: RunId) -> RunRecord;
        run(run: RunId) -> Option<RunRecord>;
        runs(state: Option<RunState>, limit: usize) -> Vec<RunRecord>;
        events(run: RunId, after: u64, limit: usize) -> Vec<Event>;
        prune(age: Duration) -> usize;
    }

    fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop> {
        let mut progress = progress.to_vec();
        self.mask(|redactor| progress.iter_mut().for_each(|(_, progress)| progress.message.rewrite(redactor)));
        Box::pin(async move { self.inner.keep(holder, lease, &progress).await })
    }

    fn accept(&self, task: NewTask) -> Stored<'_, AcceptResult> {
        let call = self.sealed(task.call.clone());
        let consent = task.consent.map(|consent| consent.respelled(&task.call, &call, task.definition));
        self.inner.accept(NewTask { call, consent, ..task })
    }

    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>> {
        read!(self.inner.claim(claim), |tasks| self.unsealed_tasks(tasks))
    }

    fn finish(&self, mut ended: Vec<Finish>) -> Stored<'_, Vec<FinishResult>> {
        self.mask(|redactor| {
            for Finish { end, .. } in &mut ended {
                if let TaskEnd::Over(outcome) | TaskEnd::Again(outcome) = end {
                    redactor.clean_outcome(outcome);
                }
            }
        });
        self.inner.finish(ended)
    }

    fn retry_task(&self, task: CallId) -> Stored<'_, Task> {
        read!(self.inner.retry_task(task), |task| self.unsealed_task(task))
    }

    fn task(&self, task: CallId) -> Stored<'_, Option<Task>> {
        read!(self.inner.task(task), |task| task.map(|task| self.unsealed_task(task)))
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, Vec<Task>> {
        read!(self.inner.tasks(filter), |tasks| self.unsealed_tasks(tasks))
    }

    fn inbox(&self, conversation: ConversationId) -> Stored<'_, Vec<Task>> {
        read!(self.inner.inbox(conversation), |tasks| self.unsealed_tasks(tasks))
    }

    fn add_approval(&self, approval: Approval) -> Stored<'_, ()> {
        self.inner.add_approval(self.sealed(approval))
    }

    fn decide(&self, approval: ApprovalId, decision: DecisionRecord) -> Stored<'_, DecisionResult> {
        read!(self.inner.decide(approval, self.sealed(decision)), |result| match result {
            DecisionResult::Accepted(approval) => DecisionResult::Accepted(self.unsealed(approval)),
            DecisionResult::TooLate(approval) => DecisionResult::TooLate(self.unsealed(approval)),
            DecisionResult::Unknown => DecisionResult::Unknown,
        })
    }

    fn approval(&self, approval: ApprovalId) -> Stored<'_, Option<Approval>> {
        read!(self.inner.approval(approval), |approval| self.unsealed(approval))
    }

    fn approvals(&self, run: Option<RunId>, open: bool, limit: usize) -> Stored<'_, Vec<Approval>> {
        read!(self.inner.approvals(run, open, limit), |approvals| self.unsealed(approvals))
    }

    fn take_run(&self, run: RunId, holder: HolderId) -> Stored<'_, TakenRun> {
        read!(self.inner.take_run(run, holder), |taken| TakenRun { snapshot: self.unsealed(taken.snapshot), ..taken })
    }

    fn commit_run(&self, commit: RunCommit) -> Stored<'_, u64> {
        self.inner.commit_run(self.sealed_commit(commit))
    }

    fn conversation(&self, conversation: ConversationId) -> Stored<'_, Option<ConversationRecord>> {
        read!(self.inner.conversation(conversation), |record| record.map(|record| self.unsealed_conversation(record)))
    }

    fn conversations(&self, limit: usize) -> Stored<'_, Vec<ConversationRecord>> {
        read!(self.inner.conversations(limit), |records| { records.into_iter().map(|record| self.unsealed_conversation(record)).collect() })
    }

    fn put_body<'a>(&'a self, bytes: &'a [u8]) -> Stored<'a, Digest> {
        let Secrets { redactor, are_kept } = self.secrets();
        let seal = Seal { redactor, keeps_secrets: *are_kept };
        match std::str::from_utf8(bytes).ok().and_then(|text| seal.text(text)) {
            Some(sealed) => Box::pin(async move { self.inner.put_body(sealed.as_bytes()).await }),
            None => self.inner.put_body(bytes),
        }
    }

    fn body(&self, digest: Digest) -> Stored<'_, Option<Vec<u8>>> {
        read!(self.inner.body(digest), |body| body.map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => self.unsealed(text).into_bytes(),
            Err(error) => error.into_bytes(),
        }))
    }

    fn backup<'a>(&'a self, file: &'a Path) -> Stored<'a, ()> {
        self.inner.backup(file)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}
