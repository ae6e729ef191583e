//! A store that logs what it acknowledged to its clients, after it did so: what is logged was promised.

use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{
    AcceptResult, Approval, CancelResult, Claim, ConversationRecord, DecisionRecord, DecisionResult, Finish, FinishResult, NewTask,
    Progress, RecoveryReport, RunCommit, RunRecord, RunState, Stop, Stored, TakenRun, Task, TaskEnd, TaskFilter,
};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, HolderId, Outcome, RunId, Store, Verdict};
use tokio::sync::watch;

use crate::forward::forward_most;
use crate::history::Observation;
use crate::log::{Log, Paths};

/// A store that logs its promises.
pub(crate) struct WitnessStore {
    inner: Arc<dyn Store>,
    told: Log,
    events: Log,
    claims: Log,
    late: Log,
    /// The longest lease that it asks for.
    lease: Duration,
}

/// A result in the form that is compared.
pub(crate) fn result(outcome: &Outcome) -> String {
    format!("{}: {}", if outcome.is_success() { "good" } else { "bad" }, outcome.text())
}

/// An event in the form that is compared.
pub(crate) fn what(event: &Event) -> String {
    let text = serde_json::to_string(event).expect("JSON");
    Digest::of([text.as_bytes()]).to_string()
}

impl WitnessStore {
    /// A witness whose process asks for no longer lease than this one.
    pub(crate) fn new(inner: Arc<dyn Store>, paths: &Paths, lease: Duration) -> Self {
        let open = |path: std::path::PathBuf| Log::open(&path);
        let (told, events, claims, late) = (open(paths.told()), open(paths.events()), open(paths.claims()), open(paths.late()));
        Self { inner, told, events, claims, late, lease }
    }

    fn asked(&self, approval: &Approval) {
        self.told.add(&Observation::Asked { approval: approval.request.id, call: approval.request.call.id });
    }
}

impl Store for WitnessStore {
    forward_most!();

    fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop> {
        self.inner.keep(holder, lease.min(self.lease), progress)
    }

    fn accept(&self, task: NewTask) -> Stored<'_, AcceptResult> {
        Box::pin(async move {
            let (call, idempotent) = (task.call.id, task.idempotent);
            let accepted = self.inner.accept(task).await?;
            self.told.add(&Observation::Accepted { call, idempotent });
            Ok(accepted)
        })
    }

    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>> {
        Box::pin(async move {
            let holder = claim.holder;
            let tasks = self.inner.claim(claim).await?;
            self.claims.add(&(holder, tasks.len()));
            Ok(tasks)
        })
    }

    fn finish(&self, ended: Vec<Finish>) -> Stored<'_, Vec<FinishResult>> {
        Box::pin(async move {
            let over = |end: &Finish| match &end.end {
                TaskEnd::Over(outcome) => Some(Observation::Recorded { call: end.task, result: result(outcome) }),
                TaskEnd::Again(_) | TaskEnd::Untouched => None,
            };
            let claims: Vec<_> = ended.iter().map(|end| (end.task, over(end))).collect();
            let finished = self.inner.finish(ended).await?;
            for ((task, claim), said) in claims.iter().zip(&finished) {
                match (claim, said) {
                    (Some(claim), FinishResult::Recorded) => self.told.add(claim),
                    (_, FinishResult::Late) => self.late.add(task),
                    _ => {}
                }
            }
            Ok(finished)
        })
    }

    fn task(&self, task: CallId) -> Stored<'_, Option<Task>> {
        Box::pin(async move {
            let found = self.inner.task(task).await?;
            if let Some(outcome) = found.as_ref().and_then(|task| task.outcome.as_ref()) {
                self.told.add(&Observation::Seen { call: task, result: result(outcome) });
            }
            Ok(found)
        })
    }

    fn add_approval(&self, approval: Approval) -> Stored<'_, ()> {
        Box::pin(async move {
            self.inner.add_approval(approval.clone()).await?;
            self.asked(&approval);
            Ok(())
        })
    }

    fn decide(&self, approval: ApprovalId, decision: DecisionRecord) -> Stored<'_, DecisionResult> {
        Box::pin(async move {
            let (approve, by) = (decision.verdict == Verdict::Approve, decision.by.to_string());
            let answering = self.inner.decide(approval, decision).await?;
            if let DecisionResult::Accepted(_) = &answering {
                self.told.add(&Observation::Won { approval, approve, by });
            }
            Ok(answering)
        })
    }

    fn commit_run(&self, commit: RunCommit) -> Stored<'_, u64> {
        Box::pin(async move {
            let asked = commit.approvals.clone();
            let before = self.inner.commit_run(commit).await?;
            for approval in &asked {
                self.asked(approval);
            }
            Ok(before)
        })
    }

    fn events(&self, run: RunId, after: u64, limit: usize) -> Stored<'_, Vec<Event>> {
        Box::pin(async move {
            let events = self.inner.events(run, after, limit).await?;
            for event in &events {
                self.events.add(&Observation::Event { run, seq: event.seq, what: what(event) });
            }
            Ok(events)
        })
    }
}
