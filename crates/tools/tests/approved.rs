//! Calls whose caller waits while a person decides about them, in the process that made them.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{Approval, ApprovalState, DecisionRecord, Task, TaskFilter, TaskState};
use helve_core::{
    ApprovalRequest, CallContext, CancellationToken, ListSource, Mode, Outcome, Output, Permission, PermissionRule, Policy, Rules, Store,
    ToolCall, Verdict,
};
use helve_testkit::{fake, spec};
use helve_tools::{ApprovedCall, CallState, Catalogue, Executor, StoreHandle, Toolkit, View, Worker};
use serde_json::{Value, json};

/// An executor with a store, and a tool that says what it was called with, and what the caller brought along.
struct Stage {
    executor: Executor,
    catalogue: Catalogue,
    tools: Toolkit,
}

impl Stage {
    fn new(mode: Mode) -> Self {
        let rules = Rules::default().permission(Permission::Confirm).mode(mode);
        let tool = fake(spec("wipe").with_rules(rules), |call, cx| {
            Box::pin(async move {
                let brought = cx.extension::<&'static str>().copied().unwrap_or("nothing");
                Ok(Output::text(format!("{} with {brought}", call.arguments)))
            })
        });
        let (catalogue, executor) = (Catalogue::new(), Executor::default());
        catalogue.add_source(Arc::new(ListSource::new("tests", [tool])));
        executor.use_store(StoreHandle::in_memory()).expect("the first");
        let tools = Toolkit::everything(&catalogue.snapshot(&View::default()));
        Self { executor, catalogue, tools }
    }

    fn store(&self) -> Arc<dyn Store> {
        self.executor.store().expect("a store").inner().clone()
    }

    async fn request(&self, cx: &CallContext) -> ApprovalRequest {
        match self.executor.call(&self.tools, ToolCall::new("wipe", json!({"disk": 1})), cx).await {
            CallState::Waiting(request) => *request,
            CallState::Over(outcome) => panic!("a person must be asked: {outcome:?}"),
        }
    }

    /// Makes a call and waits for its outcome.
    async fn call(&self, cx: &CallContext) -> Outcome {
        let request = self.request(cx).await;
        match self.executor.request_approval(&self.tools, request, cx).await {
            Err(outcome) => *outcome,
            Ok(approved) => self.run(&self.tools, approved, cx).await,
        }
    }

    /// Runs an approved call to its recorded end.
    async fn run(&self, tools: &Toolkit, approved: ApprovedCall, cx: &CallContext) -> Outcome {
        let (state, open) = self.executor.run_approved(tools, approved, cx).await;
        let outcome = state.into_outcome();
        if let Some(open) = open {
            open.end(outcome.clone()).await;
        }
        outcome
    }

    /// A call that a person agreed to.
    async fn agreed(&self, cx: &CallContext) -> ApprovedCall {
        let request = self.request(cx).await;
        let (approved, ()) = tokio::join!(self.executor.request_approval(&self.tools, request, cx), self.resolve(Verdict::Approve, None));
        approved.unwrap_or_else(|outcome| panic!("a person agreed: {outcome:?}"))
    }

    /// The request that is asked now or soon.
    async fn asked(&self) -> Approval {
        loop {
            if let Some(approval) = self.store().approvals(None, false, 1).await.expect("requests").pop() {
                return approval;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Answers as soon as something is asked.
    async fn resolve(&self, verdict: Verdict, arguments: Option<Value>) {
        let decision = DecisionRecord { verdict, by: "ada".into(), reason: Some("because".to_owned()), always: false, arguments };
        self.store().decide(self.asked().await.request.id, decision).await.expect("decided");
    }

    async fn tasks(&self) -> Vec<Task> {
        self.store().tasks(TaskFilter::default().limit(10)).await.expect("tasks")
    }
}

fn caller() -> CallContext {
    CallContext::default().with_extension("a way back")
}

#[tokio::test]
async fn what_a_person_agrees_to_is_made_here_and_recorded() {
    let stage = Stage::new(Mode::Inline);
    let cx = caller();
    let (outcome, ()) = tokio::join!(stage.call(&cx), stage.resolve(Verdict::Approve, None));
    assert_eq!(outcome.text(), r#"{"disk":1} with a way back"#);
    let task = stage.tasks().await.pop().expect("a task");
    assert_eq!((task.state, task.attempts, task.id), (TaskState::Done, 1, outcome.call_id));
    assert_eq!(task.outcome.expect("an outcome").text(), outcome.text());
}

#[tokio::test]
async fn a_person_may_write_other_arguments() {
    let stage = Stage::new(Mode::Inline);
    let cx = caller();
    let (outcome, ()) = tokio::join!(stage.call(&cx), stage.resolve(Verdict::Approve, Some(json!({"disk": 2}))));
    assert_eq!(outcome.text(), r#"{"disk":2} with a way back"#);
}

#[tokio::test]
async fn a_no_is_told_with_its_reason() {
    let stage = Stage::new(Mode::Inline);
    let cx = caller();
    let (outcome, ()) = tokio::join!(stage.call(&cx), stage.resolve(Verdict::Deny, None));
    let error = outcome.error().expect("an error");
    assert_eq!((error.message(), &error.details()["reason"]), ("the user denied the call: because", &json!("denied")));
    assert!(stage.tasks().await.is_empty());
}

#[tokio::test]
async fn whoever_gives_up_takes_the_question_back() {
    // Cancelled,
    let stage = Stage::new(Mode::Inline);
    let cancel = CancellationToken::new();
    let cx = caller().with_cancel(cancel.clone());
    let (outcome, ()) = tokio::join!(stage.call(&cx), async {
        stage.asked().await;
        cancel.cancel();
    });
    assert_eq!(outcome.error().expect("an error").kind(), helve_core::ErrorKind::Cancelled);
    assert_eq!(stage.asked().await.state, ApprovalState::Denied);
    // or just gone.
    let stage = Stage::new(Mode::Inline);
    let cx = caller();
    tokio::select! {
        _ = stage.call(&cx) => panic!("no person has decided"),
        _ = stage.asked() => {}
    }
    while stage.asked().await.state == ApprovalState::Pending {
        tokio::task::yield_now().await;
    }
    stage.resolve(Verdict::Approve, None).await;
    assert_eq!(stage.asked().await.state, ApprovalState::Denied, "an answer comes too late");
    assert!(stage.tasks().await.is_empty());
}

#[tokio::test]
async fn what_was_approved_and_is_not_made_is_over() {
    let stage = Stage::new(Mode::Inline);
    let cx = caller();
    let approved = stage.agreed(&cx).await;
    assert_eq!(stage.tasks().await[0].state, TaskState::Running);
    drop(approved);
    while stage.tasks().await[0].state == TaskState::Running {
        tokio::task::yield_now().await;
    }
    let outcome = stage.tasks().await.pop().and_then(|task| task.outcome).expect("an outcome");
    assert_eq!(outcome.error().expect("an error").kind(), helve_core::ErrorKind::Cancelled);
}

#[tokio::test]
async fn what_rules_forbid_by_now_is_not_made() {
    let stage = Stage::new(Mode::Inline);
    let cx = caller();
    let answer = async {
        stage.asked().await;
        stage.executor.set_policy(Policy::new(vec![PermissionRule::for_tool("wipe", Permission::Deny)]));
        stage.resolve(Verdict::Approve, None).await;
    };
    let (outcome, ()) = tokio::join!(stage.call(&cx), answer);
    assert_eq!(outcome.error().expect("an error").details()["reason"], "policy");
    assert_eq!(stage.tasks().await[0].state, TaskState::Failed);
}

#[tokio::test]
async fn a_tool_that_is_gone_by_now_is_not_called() {
    let stage = Stage::new(Mode::Inline);
    let cx = caller();
    let approved = stage.agreed(&cx).await;
    let other = helve_testkit::toolkit([helve_testkit::echo("other", Rules::default())]);
    let outcome = stage.run(&other, approved, &cx).await;
    assert!(outcome.error().is_some_and(|error| error.message().contains("gone or has changed")), "{outcome:?}");
}

#[tokio::test]
async fn a_call_that_goes_on_is_recorded_as_it_ends() {
    for ends in [true, false] {
        let stage = Stage::new(Mode::Inline);
        let cx = caller();
        let approved = stage.agreed(&cx).await;
        let (CallState::Over(outcome), Some(open)) = stage.executor.run_approved(&stage.tools, approved, &cx).await else {
            panic!("it goes on")
        };
        assert_eq!(stage.tasks().await[0].state, TaskState::Running);
        let open = open.kept_open();
        if ends {
            open.end(outcome).await;
            assert_eq!(stage.tasks().await[0].state, TaskState::Done);
        } else {
            drop(open);
        }
        while stage.tasks().await[0].state == TaskState::Running {
            tokio::task::yield_now().await;
        }
        let error = stage.tasks().await.pop().and_then(|task| task.outcome).expect("an outcome").error().map(helve_core::ToolError::kind);
        assert_eq!(error, (!ends).then_some(helve_core::ErrorKind::Cancelled), "its caller dropped it");
    }
}

#[tokio::test]
async fn an_outcome_is_recorded_also_if_the_caller_goes_away() {
    let stage = Stage::new(Mode::Inline);
    let cx = caller();
    let approved = stage.agreed(&cx).await;
    drop(stage.executor.run_approved(&stage.tools, approved, &cx).await);
    while stage.tasks().await[0].state == TaskState::Running {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.tasks().await[0].state, TaskState::Done);
}

#[tokio::test]
async fn a_call_that_goes_on_is_made_again_without_another_question() {
    let stage = Stage::new(Mode::Inline);
    let cx = caller();
    let approved = stage.agreed(&cx).await;
    let (_, open) = stage.executor.run_approved(&stage.tools, approved, &cx).await;
    let again = CallContext::default().with_extension("the answer");
    let open = open.expect("it is open").kept_open();
    let (made, open) = stage.executor.run_approved(&stage.tools, open, &again).await;
    assert_eq!(made.into_outcome().text(), r#"{"disk":1} with the answer"#);
    // What rules forbid by now is not made again.
    stage.executor.set_policy(Policy::new(vec![PermissionRule::for_tool("wipe", Permission::Deny)]));
    let refused = stage.run(&stage.tools, open.expect("it is open").kept_open(), &again).await;
    assert_eq!(refused.error().expect("refused").details()["reason"], "policy");
    assert_eq!(stage.tasks().await[0].state, TaskState::Failed);
}

#[tokio::test]
async fn what_runs_in_the_background_runs_in_a_worker() {
    let stage = Stage::new(Mode::Background);
    let (cx, stop) = (caller(), CancellationToken::new());
    let store = stage.executor.store().expect("a store").clone();
    let worker = Worker::new(store, stage.executor.clone(), stage.catalogue.clone(), 1).run(stop.clone());
    let called = async {
        let outcome = stage.call(&cx).await;
        stop.cancel();
        outcome
    };
    let (outcome, (), ()) = tokio::join!(called, stage.resolve(Verdict::Approve, None), worker);
    assert_eq!(outcome.text(), r#"{"disk":1} with nothing"#);
}

#[tokio::test]
async fn without_a_record_nobody_can_be_asked() {
    let stage = Stage { executor: Executor::default(), ..Stage::new(Mode::Inline) };
    let outcome = stage.call(&caller()).await;
    assert!(outcome.error().is_some_and(|error| error.message().contains("no store")), "{outcome:?}");
}
