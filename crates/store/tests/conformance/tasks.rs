//! The queue.

use std::time::Duration;

use helve_core::store::{
    AGEING, AcceptResult, CancelResult, Claim, Finish, FinishResult, Progress, RecoveryReport, TaskEnd, TaskFilter, TaskState,
};
use helve_core::{CallId, ErrorKind, EventData, Store, StoreError};

use crate::scene::*;

pub async fn a_task_is_accepted_once_and_told_to_its_run(store: &dyn Store) {
    let run = started(store).await;
    let task = NewTask { caller: of_run(&run), ..task("a") };
    assert_eq!(store.accept(task.clone()).await.expect("accepted"), AcceptResult::New);
    assert_eq!(store.accept(task.clone()).await.expect("accepted"), AcceptResult::Known);
    assert_eq!(ids(store).await, [task.call.id]);
    let events = store.events(run.run, 1, 10).await.expect("events");
    assert!(matches!(&events[..], [event] if matches!(&event.data, EventData::TaskAccepted { call_id, .. } if *call_id == task.call.id)));
    let found = find(store, task.call.id).await;
    assert_eq!((found.state, found.attempts, &found.call), (TaskState::Queued, 0, &task.call));
    assert!(store.task(CallId::mint()).await.expect("readable").is_none());
}

pub async fn a_list_of_tasks_is_a_page_unless_told_otherwise(store: &dyn Store) {
    let mut ids = Vec::new();
    for _ in 0..=TaskFilter::PAGE {
        ids.push(accepted(store, task("a")).await);
    }
    let listed: Vec<CallId> = store.tasks(TaskFilter::default()).await.expect("a list").into_iter().map(|task| task.id).collect();
    ids.sort();
    assert_eq!(listed, ids.into_iter().rev().take(TaskFilter::PAGE).collect::<Vec<_>>(), "the newest");
}

pub async fn the_queue_goes_by_priority_and_age(store: &dyn Store) {
    let worker = process(store).await;
    let low = accepted(store, NewTask { priority: -3, ..task("a") }).await;
    let usual = accepted(store, task("a")).await;
    let next = accepted(store, task("a")).await;
    let high = accepted(store, NewTask { priority: 3, ..task("a") }).await;
    let order: Vec<_> = claim(store, worker, 10).await.into_iter().map(|task| task.id).collect();
    assert!(order == [high, usual, next, low] || order == [high, next, usual, low], "those of one millisecond in any order: {order:?}");
    // A step of priority is worth some time, and no more: a task that waited longer goes first.
    let (first, behind) = (task("a"), NewTask { priority: 1, delay: AGEING * 2, ..task("a") });
    let rank = |task: NewTask| Task::new(task, Timestamp::now()).rank();
    assert!(rank(first) < rank(behind));
}

pub async fn a_worker_gets_only_what_it_can_run(store: &dyn Store) {
    let worker = process(store).await;
    let other = accepted(store, task("other")).await;
    let mine = accepted(store, task("mine")).await;
    let tools = [definition("mine"), definition("more")];
    let got = store.claim(Claim { holder: worker, limit: 10, tools: Some(&tools) }).await.expect("a claim");
    assert_eq!(got.iter().map(|task| task.id).collect::<Vec<_>>(), [mine]);
    assert_eq!(find(store, other).await.state, TaskState::Queued);
    assert!(store.claim(Claim { holder: worker, limit: 10, tools: Some(&[]) }).await.expect("a claim").is_empty());
}

pub async fn two_workers_never_get_the_same_task(store: &dyn Store) {
    for _ in 0..40 {
        accepted(store, task("a")).await;
    }
    let (one, two) = (process(store).await, process(store).await);
    let mut got = Vec::new();
    for _ in 0..10 {
        let (first, second) = tokio::join!(claim(store, one, 3), claim(store, two, 3));
        got.extend(first.into_iter().chain(second).map(|task| task.id));
    }
    let count = got.len();
    got.sort_unstable();
    got.dedup();
    assert_eq!((count, got.len()), (40, 40));
}

pub async fn a_result_counts_once_and_only_from_who_has_the_task(store: &dyn Store) {
    let run = started(store).await;
    let id = accepted(store, NewTask { caller: of_run(&run), ..task("a") }).await;
    let held = claim_one(store, run.holder).await;
    assert_eq!((held.id, held.state, held.attempts, held.holder), (id, TaskState::Running, 1, Some(run.holder)));
    let forged = store.finish(vec![
        Finish { task: id, epoch: held.epoch + 1, end: TaskEnd::Over(good(&held)) },
        Finish { task: CallId::mint(), epoch: 1, end: TaskEnd::Over(good(&held)) },
    ]);
    assert_eq!(forged.await.expect("answers"), [FinishResult::Late, FinishResult::Unknown]);
    assert_eq!(find(store, id).await.state, TaskState::Running, "a forged epoch changes nothing");
    assert_eq!(finish(store, &held, TaskEnd::Over(good(&held))).await, FinishResult::Recorded);
    assert_eq!(finish(store, &held, TaskEnd::Over(bad(&held, ErrorKind::Failed))).await, FinishResult::Late);
    let task = find(store, id).await;
    assert_eq!((task.state, task.late, task.holder), (TaskState::Done, 2, None));
    assert!(task.outcome.is_some_and(|outcome| outcome.is_success()));
    let events = store.events(run.run, 2, 10).await.expect("events");
    assert!(matches!(&events[..], [event] if matches!(&event.data, EventData::TaskFinished { call_id, .. } if *call_id == id)));
}

pub async fn a_failure_that_may_pass_is_tried_again_and_then_dead(store: &dyn Store) {
    let worker = process(store).await;
    let id = accepted(store, NewTask { max_attempts: 2, ..task("a") }).await;
    let held = claim_one(store, worker).await;
    assert_eq!(finish(store, &held, TaskEnd::Again(bad(&held, ErrorKind::Unreachable))).await, FinishResult::Recorded);
    let waits = find(store, id).await;
    assert_eq!((waits.state, waits.outcome.is_none()), (TaskState::Queued, true));
    assert!(waits.due > Timestamp::now(), "not at once");
    assert!(claim(store, worker, 1).await.is_empty());
    // The last try is its end.
    let other = accepted(store, NewTask { max_attempts: 1, ..task("a") }).await;
    let held = claim_one(store, worker).await;
    finish(store, &held, TaskEnd::Again(bad(&held, ErrorKind::Unreachable))).await;
    let dead = find(store, other).await;
    assert_eq!(dead.state, TaskState::Dead);
    assert!(dead.outcome.is_some());
}

pub async fn what_must_not_run_twice_is_not_tried_again(store: &dyn Store) {
    let worker = process(store).await;
    let id = accepted(store, NewTask { idempotent: false, ..task("a") }).await;
    let held = claim_one(store, worker).await;
    finish(store, &held, TaskEnd::Again(bad(&held, ErrorKind::Unreachable))).await;
    assert_eq!(find(store, id).await.state, TaskState::Failed);
}

pub async fn a_delayed_task_waits(store: &dyn Store) {
    let worker = process(store).await;
    accepted(store, NewTask { delay: Duration::from_hours(1), priority: 100, ..task("a") }).await;
    let now = accepted(store, task("a")).await;
    assert_eq!(claim(store, worker, 10).await.into_iter().map(|task| task.id).collect::<Vec<_>>(), [now]);
}

pub async fn a_task_can_be_cancelled_before_and_while_it_runs(store: &dyn Store) {
    let worker = process(store).await;
    let waiting = accepted(store, task("a")).await;
    assert_eq!(store.cancel_task(waiting).await.expect("cancelled"), CancelResult::Done);
    assert!(claim(store, worker, 1).await.is_empty(), "it can no longer run");
    assert_eq!(store.cancel_task(waiting).await.expect("too late"), CancelResult::TooLate(TaskState::Cancelled));
    let running = accepted(store, task("a")).await;
    let held = claim_one(store, worker).await;
    assert_eq!(store.cancel_task(running).await.expect("told"), CancelResult::Requested);
    assert_eq!(store.keep(worker, LEASE, &[]).await.expect("kept").tasks, [running]);
    assert!(store.keep(process(store).await, LEASE, &[]).await.expect("kept").tasks.is_empty(), "others are not told");
    finish(store, &held, TaskEnd::Over(bad(&held, ErrorKind::Cancelled))).await;
    assert_eq!(find(store, running).await.state, TaskState::Cancelled);
    assert!(matches!(store.cancel_task(CallId::mint()).await, Err(StoreError::NotFound(_))));
}

pub async fn a_task_that_ended_badly_is_tried_again_as_another(store: &dyn Store) {
    let worker = process(store).await;
    let id = accepted(store, task("a")).await;
    assert!(matches!(store.retry_task(id).await, Err(StoreError::Conflict(_))), "it has not ended");
    let held = claim_one(store, worker).await;
    finish(store, &held, TaskEnd::Over(bad(&held, ErrorKind::Failed))).await;
    let again = store.retry_task(id).await.expect("again");
    assert_eq!((again.retry_of, again.state, &again.call.arguments), (Some(id), TaskState::Queued, &held.call.arguments));
    assert_ne!(again.id, id);
    assert_eq!(find(store, id).await.state, TaskState::Failed, "what was reported stays");
    assert_eq!(claim_one(store, worker).await.id, again.id);
}

pub async fn progress_is_seen_while_it_runs(store: &dyn Store) {
    let worker = process(store).await;
    let id = accepted(store, task("a")).await;
    claim_one(store, worker).await;
    let other = accepted(store, task("b")).await;
    let half = Progress { fraction: Some(0.5), message: "half".to_owned() };
    store.keep(worker, LEASE, &[(id, half.clone()), (other, half.clone())]).await.expect("kept");
    assert_eq!(find(store, id).await.progress, Some(half));
    assert_eq!(find(store, other).await.progress, None, "no process works on it");
}

pub async fn tasks_of_a_worker_that_is_gone_go_on_or_end(store: &dyn Store) {
    let (gone, here) = (process(store).await, process(store).await);
    let again = accepted(store, task("a")).await;
    let never = accepted(store, NewTask { idempotent: false, ..task("a") }).await;
    let last = accepted(store, NewTask { max_attempts: 1, ..task("a") }).await;
    let wanted = accepted(store, task("a")).await;
    let held = claim(store, gone, 10).await;
    store.cancel_task(wanted).await.expect("told");
    assert_eq!(store.recover(here).await.expect("nothing").tasks, 0, "it is still there");
    store.leave(gone).await.expect("left");
    assert_eq!(store.recover(here).await.expect("recovered").tasks, 4);
    let states = [again, never, last, wanted].map(|id| find(store, id));
    let mut found = Vec::new();
    for state in states {
        found.push(state.await);
    }
    let [again, never, last, wanted] = &found[..] else { panic!("four tasks") };
    assert_eq!((again.state, again.attempts), (TaskState::Queued, 1));
    let kind = |task: &Task| task.outcome.as_ref().and_then(|outcome| outcome.error().map(ToolError::kind));
    assert_eq!((never.state, kind(never)), (TaskState::Failed, Some(ErrorKind::Interrupted)));
    assert_eq!((last.state, kind(last)), (TaskState::Dead, Some(ErrorKind::Interrupted)));
    assert_eq!((wanted.state, kind(wanted)), (TaskState::Cancelled, Some(ErrorKind::Cancelled)));
    // The one that was thought dead comes back, and is refused.
    for task in &held {
        assert_eq!(finish(store, task, TaskEnd::Over(good(task))).await, FinishResult::Late);
    }
    assert_eq!(store.recover(here).await.expect("nothing").tasks, 0, "once");
}

pub async fn a_process_that_slept_does_not_break_its_own_calls_off(store: &dyn Store) {
    let (slept, other) = (HolderId::mint(), process(store).await);
    let (started, id) = (started(store).await, accepted(store, NewTask { idempotent: false, ..task("a") }).await);
    store.keep(slept, Duration::ZERO, &[]).await.expect("a lease");
    store.leave(started.holder).await.expect("left");
    store.take_run(started.run, slept).await.expect("taken");
    let held = claim_one(store, slept).await;
    assert_eq!(store.recover(slept).await.expect("nothing"), RecoveryReport::default(), "it is awake");
    assert_eq!(find(store, id).await.state, TaskState::Running);
    let found = store.recover(other).await.expect("recovered");
    assert_eq!((found.tasks, found.runs), (1, 1), "for others its lease is over");
    assert_eq!(finish(store, &held, TaskEnd::Over(good(&held))).await, FinishResult::Late);
}

pub async fn a_task_that_was_not_begun_goes_back_unharmed(store: &dyn Store) {
    let worker = process(store).await;
    let id = accepted(store, NewTask { idempotent: false, max_attempts: 1, ..task("a") }).await;
    let held = claim_one(store, worker).await;
    finish(store, &held, TaskEnd::Untouched).await;
    let task = find(store, id).await;
    assert_eq!((task.state, task.attempts), (TaskState::Queued, 0));
    assert_eq!(finish(store, &held, TaskEnd::Over(good(&held))).await, FinishResult::Late);
    assert_eq!(claim_one(store, worker).await.id, id);
    let listed = store.tasks(TaskFilter::default().state(TaskState::Running).limit(10)).await.expect("a list");
    assert_eq!(listed.len(), 1);
}

pub async fn a_task_keeps_the_consent_under_which_it_was_accepted(store: &dyn Store) {
    let new = task("a");
    let consent = Consent::of_caller(&new.call, new.definition);
    let consented = accepted(store, NewTask { consent: Some(consent.clone()), sets: Arc::from(["web".into()]), ..new }).await;
    let none = accepted(store, task("a")).await;
    let holder = process(store).await;
    let claimed = claim(store, holder, 2).await;
    for task in claimed.into_iter().chain([find(store, consented).await, find(store, none).await]) {
        let expected = (task.id == consented).then_some(&consent);
        assert_eq!((task.consent.as_ref(), task.sets.len()), (expected, usize::from(expected.is_some())));
        assert!(task.consent.is_none_or(|consent| consent.covers(&task.call, task.definition)));
    }
}

pub async fn whoever_tries_a_task_again_consents_to_it(store: &dyn Store) {
    accepted(store, NewTask { idempotent: false, ..task("a") }).await;
    let holder = process(store).await;
    let task = claim_one(store, holder).await;
    assert_eq!(task.consent, None);
    finish(store, &task, TaskEnd::Over(bad(&task, ErrorKind::PermissionDenied))).await;
    let again = store.retry_task(task.id).await.expect("again");
    let found = claim_one(store, holder).await;
    assert_eq!((found.id, &found.consent), (again.id, &again.consent));
    assert!(found.consent.is_some_and(|consent| consent.covers(&found.call, found.definition)));
}
