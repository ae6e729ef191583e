//! Questions and answers.

use helve_core::store::{Approval, ApprovalState, DecisionRecord, DecisionResult, FinishResult, RecoveryReport, TaskState};
use helve_core::{ApprovalId, ApprovalRequest, EventData, Mode, Rules, Schema, Store, ToolSpec, Verdict};

use crate::scene::*;

fn request(caller: Caller) -> ApprovalRequest {
    let spec = ToolSpec::new("wipe", "Wipes a disk.", Schema::any_object()).expect("a spec");
    ApprovalRequest::new(ToolCall::new("wipe", json!({"disk": 1})), &"s".into(), &spec, caller, "because".into())
}

pub fn approval(caller: Caller) -> Approval {
    Approval::new(request(caller), definition("wipe"), &Rules::default())
}

fn reply(verdict: Verdict, by: &str) -> DecisionRecord {
    DecisionRecord { verdict, by: by.into(), reason: None, always: false, arguments: None }
}

async fn state(store: &dyn Store, id: ApprovalId) -> ApprovalState {
    store.approval(id).await.expect("readable").expect("a request").state
}

/// A run that waits for an answer.
async fn waiting(store: &dyn Store, expires: Option<Timestamp>) -> (Started, ApprovalId) {
    let run = started(store).await;
    let mut asked = approval(of_run(&run));
    asked.request.expires_at = expires;
    let id = asked.request.id;
    store.commit_run(RunCommit { approvals: vec![asked], ..step(run.run, 1, RunState::Waiting) }).await.expect("asked");
    (run, id)
}

pub async fn exactly_one_answer_wins(store: &dyn Store) {
    let (run, id) = waiting(store, None).await;
    let (ada, bob) = tokio::join!(store.decide(id, reply(Verdict::Approve, "ada")), store.decide(id, reply(Verdict::Deny, "bob")));
    let won = [ada, bob]
        .into_iter()
        .map(|answer| answer.expect("an answer"))
        .filter(|answer| matches!(answer, DecisionResult::Accepted(_)))
        .count();
    assert_eq!(won, 1);
    let stored = store.approval(id).await.expect("readable").expect("a request");
    let by = stored.decision.as_ref().expect("an answer").by.clone();
    assert_eq!(stored.state, if &*by == "ada" { ApprovalState::Approved } else { ApprovalState::Denied });
    let results = store.events(run.run, 0, 100).await.expect("events");
    let told = results.iter().filter(|event| matches!(event.data, EventData::PermissionResult { .. })).count();
    assert_eq!(told, 1, "and is told once");
    let Ok(DecisionResult::TooLate(late)) = store.decide(id, reply(Verdict::Approve, "eve")).await else { panic!("too late") };
    assert_eq!(late.decision.expect("the first answer").by, by);
    assert!(matches!(store.decide(ApprovalId::mint(), reply(Verdict::Approve, "eve")).await, Ok(DecisionResult::Unknown)));
}

pub async fn an_answer_lets_its_run_go_on(store: &dyn Store) {
    let (run, id) = waiting(store, None).await;
    let before = store.run(run.run).await.expect("readable").expect("a run");
    assert_eq!((before.state, before.holder), (RunState::Waiting, None));
    let open = store.approvals(Some(run.run), true, 10).await.expect("a list");
    assert_eq!(open.iter().map(|approval| approval.request.id).collect::<Vec<_>>(), [id]);
    store.decide(id, DecisionRecord { reason: Some("go".into()), ..reply(Verdict::Approve, "ada") }).await.expect("answered");
    assert_eq!(store.run(run.run).await.expect("readable").expect("a run").state, RunState::Ready);
    let approval = store.approvals(Some(run.run), false, 10).await.expect("a list").pop().expect("a request");
    let grant = approval.grant().expect("a grant");
    assert_eq!((grant.approval_id, grant.digest, grant.verdict), (id, approval.request.digest, Verdict::Approve));
    assert_eq!((grant.by.as_str(), grant.reason.as_deref()), ("ada", Some("go")));
    // An answer that came before the run said that it waits is not lost.
    let run = started(store).await;
    let asked = approval_of(&run);
    let id = asked.request.id;
    store.commit_run(RunCommit { approvals: vec![asked], ..step(run.run, 1, RunState::Running) }).await.expect("asked");
    store.decide(id, reply(Verdict::Deny, "ada")).await.expect("answered");
    store.commit_run(step(run.run, 1, RunState::Waiting)).await.expect("waits");
    assert_eq!(store.run(run.run).await.expect("readable").expect("a run").state, RunState::Ready);
}

fn approval_of(run: &Started) -> Approval {
    approval(of_run(run))
}

pub async fn an_approved_call_without_a_run_goes_into_the_queue(store: &dyn Store) {
    let asked = approval(Caller::default());
    let (id, call) = (asked.request.id, asked.request.call.clone());
    store.add_approval(asked).await.expect("asked");
    assert!(ids(store).await.is_empty());
    store.decide(id, reply(Verdict::Approve, "ada")).await.expect("answered");
    let task = find(store, call.id).await;
    assert_eq!((task.state, task.call, task.definition, task.idempotent), (TaskState::Queued, call, definition("wipe"), false));
    // By the rules of its tool.
    let rules = Rules::default().priority(4).delay(Duration::from_mins(10));
    let asked = Approval::new(request(Caller::default()), definition("wipe"), &rules);
    let (id, call) = (asked.request.id, asked.request.call.id);
    store.add_approval(asked).await.expect("asked");
    store.decide(id, reply(Verdict::Approve, "ada")).await.expect("answered");
    let task = find(store, call).await;
    let waits = task.due.duration_since(task.created).as_millis();
    assert!(task.priority == 4 && (599_999..=600_000).contains(&waits), "{task:?}");
    // With other arguments, where the person wrote some.
    let asked = approval(Caller::default());
    let (id, call) = (asked.request.id, asked.request.call.id);
    store.add_approval(asked).await.expect("asked");
    store.decide(id, DecisionRecord { arguments: Some(json!({"disk": 2})), ..reply(Verdict::Approve, "ada") }).await.expect("answered");
    assert_eq!(find(store, call).await.call.arguments, json!({"disk": 2}));
}

pub async fn an_approved_call_carries_the_consent_to_what_was_approved(store: &dyn Store) {
    for arguments in [None, Some(json!({"disk": 2}))] {
        let asked = approval(Caller::default().agent("ada"));
        let (id, call) = (asked.request.id, asked.request.call.clone());
        store.add_approval(asked).await.expect("asked");
        store.decide(id, DecisionRecord { arguments: arguments.clone(), ..reply(Verdict::Approve, "ada") }).await.expect("answered");
        let task = find(store, call.id).await;
        let approved = ToolCall { arguments: arguments.unwrap_or(call.arguments.clone()), ..call };
        assert_eq!(task.consent, Some(Consent::of_approval(id, &approved, definition("wipe"))));
    }
}

/// A request of a call that a process waits for, and that process.
async fn waited_for(store: &dyn Store) -> (Approval, HolderId) {
    let holder = process(store).await;
    let rules = Rules::default().idempotent(true);
    // The server of a store need not understand all that JSON can hold.
    let call = ToolCall::new("wipe", json!({"disk": "a\u{0}b"}));
    let asked = Approval {
        request: ApprovalRequest { call, ..request(Caller::default()) },
        ..Approval::new(request(Caller::default()), definition("wipe"), &rules)
    };
    let asked = asked.asked_by(holder);
    store.add_approval(asked.clone()).await.expect("asked");
    (asked, holder)
}

pub async fn an_approved_call_goes_to_the_process_that_waits_for_it(store: &dyn Store) {
    let (asked, waits) = waited_for(store).await;
    store.decide(asked.request.id, reply(Verdict::Approve, "ada")).await.expect("answered");
    let other = process(store).await;
    assert!(claim(store, other, 10).await.is_empty(), "no other process takes it");
    assert_eq!(store.recover(other).await.expect("recovered"), RecoveryReport::default());
    let task = find(store, asked.request.call.id).await;
    assert_eq!((task.state, task.holder, task.epoch), (TaskState::Running, Some(waits), 1));
    assert_eq!(finish(store, &task, TaskEnd::Over(good(&task))).await, FinishResult::Recorded);
}

pub async fn an_approved_call_in_the_background_is_anybodys(store: &dyn Store) {
    let waits = process(store).await;
    let rules = Rules::default().idempotent(true).mode(Mode::Background);
    let asked = Approval::new(request(Caller::default()), definition("wipe"), &rules).asked_by(waits);
    let (id, call) = (asked.request.id, asked.request.call.id);
    store.add_approval(asked.clone()).await.expect("asked");
    store.decide(id, reply(Verdict::Approve, "ada")).await.expect("answered");
    let task = claim_one(store, process(store).await).await;
    assert_eq!((task.id, task.idempotent), (call, true));
    // If its process is gone before it is approved, it is not accepted.
    let asked = Approval { request: request(Caller::default()), ..asked };
    let id = asked.request.id;
    store.add_approval(asked).await.expect("asked");
    store.leave(waits).await.expect("left");
    assert!(matches!(store.decide(id, reply(Verdict::Approve, "ada")).await, Ok(DecisionResult::TooLate(_))));
    assert_eq!(ids(store).await, [call]);
}

pub async fn nobody_makes_a_call_that_nobody_waits_for(store: &dyn Store) {
    // Seen by the process that decides,
    let (asked, waits) = waited_for(store).await;
    store.leave(waits).await.expect("left");
    let answer = store.decide(asked.request.id, reply(Verdict::Approve, "ada")).await;
    assert!(matches!(answer, Ok(DecisionResult::TooLate(late)) if late.state == ApprovalState::Cancelled && late.decision.is_none()));
    assert_eq!(state(store, asked.request.id).await, ApprovalState::Cancelled);
    // by the process that recovers,
    let (asked, waits) = waited_for(store).await;
    let other = process(store).await;
    assert_eq!(store.recover(other).await.expect("recovered").approvals, 0);
    store.leave(waits).await.expect("left");
    assert_eq!(store.recover(other).await.expect("recovered").approvals, 1);
    assert_eq!(state(store, asked.request.id).await, ApprovalState::Cancelled);
    assert!(ids(store).await.is_empty());
    // and where it was approved before, it is broken off, also where it may run twice.
    let (asked, waits) = waited_for(store).await;
    store.decide(asked.request.id, reply(Verdict::Approve, "ada")).await.expect("answered");
    store.leave(waits).await.expect("left");
    assert_eq!(store.recover(other).await.expect("recovered").tasks, 1);
    assert_eq!(find(store, asked.request.call.id).await.state, TaskState::Failed);
}

pub async fn a_denied_call_never_runs(store: &dyn Store) {
    let asked = approval(Caller::default());
    let id = asked.request.id;
    store.add_approval(asked.clone()).await.expect("asked");
    store.decide(id, reply(Verdict::Deny, "ada")).await.expect("answered");
    store.decide(id, reply(Verdict::Approve, "eve")).await.expect("too late");
    // A client that adds the approval again does not undo the decision.
    store.add_approval(asked).await.expect("known");
    store.decide(id, reply(Verdict::Approve, "eve")).await.expect("too late");
    assert!(ids(store).await.is_empty());
    assert_eq!(state(store, id).await, ApprovalState::Denied);
}

pub async fn questions_expire(store: &dyn Store) {
    let (run, id) = waiting(store, Some(Timestamp::now())).await;
    let recovered = store.recover(run.holder).await.expect("recovered");
    assert_eq!(recovered.approvals, 1);
    assert_eq!(state(store, id).await, ApprovalState::Expired);
    assert_eq!(store.run(run.run).await.expect("readable").expect("a run").state, RunState::Ready);
    assert!(matches!(store.decide(id, reply(Verdict::Approve, "ada")).await, Ok(DecisionResult::TooLate(_))));
    // A late decision finds it expired, also if it was not read before.
    let (run, id) = waiting(store, Some(Timestamp::now())).await;
    assert!(matches!(store.decide(id, reply(Verdict::Approve, "ada")).await, Ok(DecisionResult::TooLate(_))));
    assert_eq!(state(store, id).await, ApprovalState::Expired);
    assert_eq!(store.run(run.run).await.expect("readable").expect("a run").state, RunState::Ready);
    let (_, id) = waiting(store, Some(Timestamp::MAX)).await;
    assert!(matches!(store.decide(id, reply(Verdict::Approve, "ada")).await, Ok(DecisionResult::Accepted(_))));
}

pub async fn always_holds_for_the_conversation(store: &dyn Store) {
    let (run, id) = waiting(store, None).await;
    store.decide(id, DecisionRecord { always: true, ..reply(Verdict::Approve, "ada") }).await.expect("answered");
    let conversation = store.conversation(run.conversation).await.expect("readable").expect("a conversation");
    assert!(conversation.allowed.contains(&definition("wipe")));
    let (run, id) = waiting(store, None).await;
    store.decide(id, DecisionRecord { always: true, ..reply(Verdict::Deny, "ada") }).await.expect("answered");
    let conversation = store.conversation(run.conversation).await.expect("readable").expect("a conversation");
    assert!(conversation.allowed.is_empty(), "a no is no yes for good");
}

pub async fn questions_of_a_run_that_ends_are_over(store: &dyn Store) {
    let run = started(store).await;
    let asked = approval_of(&run);
    let id = asked.request.id;
    store.commit_run(RunCommit { approvals: vec![asked], ..step(run.run, 1, RunState::Running) }).await.expect("asked");
    store.commit_run(RunCommit { events: vec![ended()], ..step(run.run, 1, RunState::Cancelled) }).await.expect("over");
    assert_eq!(state(store, id).await, ApprovalState::Cancelled);
    assert!(matches!(store.decide(id, reply(Verdict::Approve, "ada")).await, Ok(DecisionResult::TooLate(_))));
    assert!(store.approvals(None, true, 10).await.expect("a list").is_empty());
}
