//! Stores that lie, each in one way. A history with one of them must not pass.

use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{
    AcceptResult, Approval, CancelResult, Claim, ConversationRecord, DecisionRecord, DecisionResult, Finish, FinishResult, NewTask,
    Progress, RecoveryReport, RunCommit, RunRecord, RunState, Stop, Stored, TakenRun, Task, TaskFilter,
};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, HolderId, RunId, Store};
use tokio::sync::watch;

use crate::forward::{forward, forward_the_rest};

/// How a store lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It says that a call is accepted, and forgets it.
    LosesTasks,
    /// It says that a result is recorded, and forgets it.
    LosesResults,
    /// It gives a task to two workers.
    GivesTwice,
    /// It tells every answer that it counts.
    LetsAllWin,
    /// It forgets requests.
    LosesQuestions,
    /// It gives a subscriber the last event again.
    RepeatsEvents,
    /// It leaves an event out.
    SkipsEvents,
}

impl Fault {
    /// Every one, with its name.
    pub const ALL: [(&'static str, Self); 7] = [
        ("loses-tasks", Self::LosesTasks),
        ("loses-results", Self::LosesResults),
        ("gives-twice", Self::GivesTwice),
        ("lets-all-win", Self::LetsAllWin),
        ("loses-requests", Self::LosesQuestions),
        ("repeats-events", Self::RepeatsEvents),
        ("skips-events", Self::SkipsEvents),
    ];

    /// The one with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault)
    }
}

/// A store that lies from time to time.
pub(crate) struct FaultyStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) fault: Fault,
}

impl FaultyStore {
    fn lies(&self, fault: Fault) -> bool {
        self.fault == fault && fastrand::bool()
    }
}

impl Store for FaultyStore {
    forward_the_rest!();

    forward! {
        task(task: CallId) -> Option<Task>;
        commit_run(commit: RunCommit) -> u64;
    }

    fn accept(&self, task: NewTask) -> Stored<'_, AcceptResult> {
        if self.lies(Fault::LosesTasks) {
            return Box::pin(std::future::ready(Ok(AcceptResult::New)));
        }
        self.inner.accept(task)
    }

    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>> {
        Box::pin(async move {
            let mut tasks = self.inner.claim(claim).await?;
            if self.lies(Fault::GivesTwice) {
                tasks.extend(tasks.first().cloned());
            }
            Ok(tasks)
        })
    }

    fn finish(&self, ended: Vec<Finish>) -> Stored<'_, Vec<FinishResult>> {
        if self.lies(Fault::LosesResults) {
            return Box::pin(std::future::ready(Ok(vec![FinishResult::Recorded; ended.len()])));
        }
        self.inner.finish(ended)
    }

    fn add_approval(&self, approval: Approval) -> Stored<'_, ()> {
        if self.lies(Fault::LosesQuestions) {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.inner.add_approval(approval)
    }

    fn decide(&self, approval: ApprovalId, decision: DecisionRecord) -> Stored<'_, DecisionResult> {
        Box::pin(async move {
            Ok(match self.inner.decide(approval, decision).await? {
                DecisionResult::TooLate(stored) if self.lies(Fault::LetsAllWin) => DecisionResult::Accepted(stored),
                answering => answering,
            })
        })
    }

    fn events(&self, run: RunId, after: u64, limit: usize) -> Stored<'_, Vec<Event>> {
        Box::pin(async move {
            let mut events = self.inner.events(run, after, limit).await?;
            if self.lies(Fault::RepeatsEvents) {
                events.extend(events.last().cloned());
            }
            if self.lies(Fault::SkipsEvents) && events.len() > 1 {
                events.remove(0);
            }
            Ok(events)
        })
    }
}
