//! Runs that need approvals, people who decide, and a driver that resumes the runs.

use std::time::Duration;

use helve_core::store::{Approval, ApprovalState, DecisionRecord, NewRun, RunCommit, RunRecord, RunState};
use helve_core::{ApprovalRequest, Caller, ConversationId, RunId, Store, StoreError, ToolCall, Verdict};
use serde_json::json;

use super::producers::task;
use super::{LEASE, Scene};
use crate::fixtures::{notes, step};

/// Maximum number of pending approvals; above it, half of them are decided.
const OPEN: usize = 14;

/// Adds approvals whenever few are pending: some of runs, some without a run.
pub(super) async fn ask(scene: Scene) {
    scene.store.keep(scene.driver, LEASE, &[]).await.expect("a lease");
    loop {
        let open = scene.store.approvals(None, true, usize::MAX).await.expect("a list").len();
        let mut asked = tokio::task::JoinSet::new();
        for _ in open..OPEN {
            let scene = scene.clone();
            asked.spawn(async move {
                if fastrand::bool() {
                    scene.store.add_approval(request(&scene, Caller::default())).await.expect("asked");
                } else {
                    begin(&scene).await;
                }
            });
        }
        while let Some(done) = asked.join_next().await {
            done.expect("asked");
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn request(scene: &Scene, caller: Caller) -> Approval {
    let kind = &scene.once;
    let call = ToolCall::new(kind.spec.name().clone(), json!({}));
    Approval::new(ApprovalRequest::new(call, &"torture".into(), &kind.spec, caller, "because".into()), kind.definition, kind.spec.rules())
}

/// A run that asks one or two things, at once or with its second step.
async fn begin(scene: &Scene) {
    let (run, conversation) = (RunId::mint(), ConversationId::mint());
    let begin =
        NewRun { id: run, conversation, parent: None, agent: None, model: "none".into(), input: "hello".into(), holder: scene.driver };
    let caller = Caller::default().conversation(conversation).run(run);
    let asked = (0..fastrand::usize(1..=2)).map(|_| request(scene, caller.clone())).collect();
    if fastrand::bool() {
        let commit = RunCommit { begin: Some(begin), approvals: asked, events: notes(2), ..step(run, 1, RunState::Waiting) };
        return lost_or(scene.store.commit_run(commit).await);
    }
    // A client that retries may start a run that has started already.
    lost_or(scene.store.commit_run(RunCommit { begin: Some(begin), events: notes(1), ..step(run, 1, RunState::Running) }).await);
    let asks = RunCommit { approvals: asked, events: notes(1), ..step(run, 1, RunState::Waiting) };
    lost_or(scene.store.commit_run(asks).await);
}

/// The run may have been answered, taken and ended in between.
fn lost_or<T>(done: Result<T, StoreError>) {
    match done {
        Ok(_) | Err(StoreError::Lost | StoreError::Conflict(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Decides half of the pending approvals at once, now and then.
pub(super) async fn answer_some(scene: Scene) {
    loop {
        tokio::time::sleep(Duration::from_micros(fastrand::u64(..40_000))).await;
        answer(&scene, OPEN / 2).await;
    }
}

/// Answers everything.
pub(super) async fn answer_all(scene: &Scene) {
    answer(scene, usize::MAX).await;
}

/// Two people answer each request at the same moment, and not the same.
async fn answer(scene: &Scene, limit: usize) {
    let open = scene.store.approvals(None, true, limit).await.expect("a list");
    let mut answers = tokio::task::JoinSet::new();
    for approval in open {
        for (by, verdict) in [("ada", Verdict::Approve), ("bob", Verdict::Deny)] {
            let (store, id) = (scene.store.clone(), approval.request.id);
            answers.spawn(async move {
                let reply = DecisionRecord { verdict, by: by.into(), reason: None, always: fastrand::bool(), arguments: None };
                store.decide(id, reply).await.expect("an answer");
            });
        }
    }
    while let Some(answered) = answers.join_next().await {
        answered.expect("an answer");
    }
}

/// Resumes runs that are ready, forever.
pub(super) async fn drive(scene: Scene) {
    loop {
        if drive_ready(&scene).await == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Resumes all runs that are ready. Returns how many.
pub(super) async fn drive_ready(scene: &Scene) -> usize {
    let ready = scene.store.runs(Some(RunState::Ready), usize::MAX).await.expect("a list");
    for run in &ready {
        go_on(scene, run).await;
    }
    ready.len()
}

/// Puts approved calls into the queue, and waits for the rest or ends. A call is accepted under its own id, so that
/// a retry after a crash accepts nothing twice.
async fn go_on(scene: &Scene, run: &RunRecord) {
    let taken = match scene.store.take_run(run.id, scene.driver).await {
        Ok(taken) => taken,
        refused => return lost_or(refused),
    };
    let asked = scene.store.approvals(Some(run.id), false, usize::MAX).await.expect("a list");
    for approval in asked.iter().filter(|approval| approval.state == ApprovalState::Approved) {
        let request = &approval.request;
        let task = task(&scene.once, request.call.clone(), request.caller.clone());
        scene.store.accept(task).await.expect("accepted");
    }
    let waits = asked.iter().any(|approval| approval.state == ApprovalState::Pending);
    let state = if waits { RunState::Waiting } else { RunState::Done };
    let commit = RunCommit { events: notes(1), ..step(run.id, taken.record.epoch, state) };
    lost_or(scene.store.commit_run(commit).await);
}

/// Whether no run is ready.
pub(super) async fn idle(scene: &Scene) -> bool {
    open_runs(&*scene.store).await == 0
}

async fn open_runs(store: &dyn Store) -> usize {
    store.runs(None, usize::MAX).await.expect("a list").iter().filter(|run| !run.state.is_over()).count()
}
