//! Histories that must not happen, and the violations that the checker finds in them.

use super::*;

/// A good history with one of everything; each test breaks one thing in it.
struct Scene {
    told: Vec<Observation>,
    ran: Vec<CallId>,
    last: FinalState,
    once: CallId,
    again: CallId,
    approved: ApprovalId,
    denied: ApprovalId,
    denied_call: CallId,
    run: RunId,
}

fn task(idempotent: bool, result: &str) -> FinalTask {
    FinalTask { idempotent, result: Some(result.to_owned()), success: true }
}

fn good() -> Scene {
    let (once, again, denied_call) = (CallId::mint(), CallId::mint(), CallId::mint());
    let (approved, denied, open) = (ApprovalId::mint(), ApprovalId::mint(), ApprovalId::mint());
    let run = RunId::mint();
    let event = |seq: u64, what: &str| Observation::Event { run, seq, what: what.to_owned() };
    let told = vec![
        Observation::Accepted { call: again, idempotent: true },
        Observation::Asked { approval: approved, call: once },
        Observation::Asked { approval: denied, call: denied_call },
        Observation::Asked { approval: open, call: CallId::mint() },
        event(1, "begun"),
        Observation::Won { approval: approved, approve: true, by: "ada".into() },
        Observation::Won { approval: denied, approve: false, by: "bob".into() },
        Observation::Recorded { call: once, result: "one".into() },
        Observation::Seen { call: once, result: "one".into() },
        Observation::Recorded { call: again, result: "two".into() },
        event(2, "ended"),
    ];
    let answered = |call, state, by: Option<&str>| FinalApproval { call, state, by: by.map(str::to_owned) };
    let last = FinalState {
        tasks: BTreeMap::from([(once, task(false, "one")), (again, task(true, "two"))]),
        approvals: BTreeMap::from([
            (approved, answered(once, ApprovalState::Approved, Some("ada"))),
            (denied, answered(denied_call, ApprovalState::Denied, Some("bob"))),
            (open, answered(CallId::mint(), ApprovalState::Pending, None)),
        ]),
        events: BTreeMap::from([(run, vec![(1, "begun".into()), (2, "ended".into())])]),
        finished: vec![once, again],
    };
    Scene { told, ran: vec![once, again, again], last, once, again, approved, denied, denied_call, run }
}

impl Scene {
    fn wrong(&self) -> Vec<Violation> {
        check(&self.told, &self.ran, &self.last)
    }

    fn task(&mut self, call: CallId) -> &mut FinalTask {
        self.last.tasks.get_mut(&call).expect("a task")
    }
}

#[test]
fn a_good_history_is_good() {
    assert_eq!(good().wrong(), []);
}

#[test]
fn a_lost_task_is_seen() {
    let mut scene = good();
    scene.last.tasks.remove(&scene.again);
    assert!(scene.wrong().contains(&Violation::Lost(scene.again)));
    let mut scene = good();
    scene.last.tasks.remove(&scene.once);
    assert!(scene.wrong().contains(&Violation::Lost(scene.once)), "one that was approved");
}

#[test]
fn a_task_without_a_result_is_seen() {
    let mut scene = good();
    let again = scene.again;
    scene.told.retain(|told| !matches!(told, Observation::Recorded { call, .. } if *call == again));
    *scene.task(again) = FinalTask { idempotent: true, result: None, success: false };
    assert_eq!(scene.wrong(), [Violation::Unfinished(again)]);
}

#[test]
fn a_doubled_result_is_seen() {
    let mut scene = good();
    scene.told.push(Observation::Recorded { call: scene.again, result: "two".into() });
    assert_eq!(scene.wrong(), [Violation::Doubled(scene.again)]);
    let mut scene = good();
    scene.last.finished.push(scene.once);
    assert_eq!(scene.wrong(), [Violation::Doubled(scene.once)]);
}

#[test]
fn a_changed_result_is_seen() {
    let mut scene = good();
    let once = scene.once;
    scene.task(once).result = Some("other".into());
    let changed = Violation::Changed { call: once, told: "one".into(), now: Some("other".into()) };
    assert_eq!(scene.wrong(), [changed.clone(), changed], "for the process that recorded it, and the one that saw it");
}

#[test]
fn a_call_that_ran_too_often_is_seen() {
    let mut scene = good();
    scene.ran.push(scene.once);
    assert_eq!(scene.wrong(), [Violation::RanTooOften(scene.once, 2)]);
    let mut scene = good();
    scene.ran.extend([scene.again; 2]);
    assert_eq!(scene.wrong(), [Violation::RanTooOften(scene.again, 4)]);
}

#[test]
fn a_result_of_nothing_is_seen() {
    let mut scene = good();
    let once = scene.once;
    scene.ran.retain(|call| *call != once);
    assert_eq!(scene.wrong(), [Violation::Invented(once)]);
}

#[test]
fn a_lost_question_is_seen() {
    let mut scene = good();
    scene.last.approvals.remove(&scene.denied);
    assert_eq!(scene.wrong(), [Violation::LostApproval(scene.denied), Violation::OtherDecision(scene.denied)]);
}

#[test]
fn two_answers_are_seen() {
    let mut scene = good();
    scene.told.push(Observation::Won { approval: scene.approved, approve: true, by: "ada".into() });
    assert_eq!(scene.wrong(), [Violation::DecidedTwice(scene.approved)]);
}

#[test]
fn an_answer_that_took_no_effect_is_seen() {
    let mut scene = good();
    scene.last.approvals.get_mut(&scene.approved).expect("a request").by = Some("eve".into());
    assert_eq!(scene.wrong(), [Violation::OtherDecision(scene.approved)]);
}

#[test]
fn a_denied_call_that_ran_is_seen() {
    let mut scene = good();
    scene.ran.push(scene.denied_call);
    assert_eq!(scene.wrong(), [Violation::DeniedRan(scene.denied_call)]);
}

#[test]
fn gaps_and_repeats_are_seen() {
    let mut scene = good();
    let run = scene.run;
    scene.told.push(Observation::Event { run, seq: 2, what: "ended".into() });
    assert_eq!(scene.wrong(), [Violation::Misnumbered { run, expected: 3, got: 2 }]);
    let mut scene = good();
    let run = scene.run;
    scene.told.retain(|told| !matches!(told, Observation::Event { seq: 1, .. }));
    assert_eq!(scene.wrong(), [Violation::Misnumbered { run, expected: 1, got: 2 }]);
    let mut scene = good();
    let run = scene.run;
    scene.last.events.get_mut(&run).expect("events").push((4, "late".into()));
    assert_eq!(scene.wrong(), [Violation::Misnumbered { run, expected: 3, got: 4 }], "in the store itself");
}

#[test]
fn another_event_is_seen() {
    let mut scene = good();
    let run = scene.run;
    scene.last.events.get_mut(&run).expect("events")[1].1 = "other".into();
    assert_eq!(scene.wrong(), [Violation::OtherEvent(run, 2)]);
}
