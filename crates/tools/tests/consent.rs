//! What a worker runs of what was accepted: by the rules of now, and with the consent of a person where they ask for it.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helve_core::store::{NewTask, Task, TaskState};
use helve_core::{
    CallContext, CallId, Caller, CancellationToken, Grant, ListSource, Mode, Output, Permission, PermissionRule, Policy, Rules, Status,
    ToolCall, Verdict,
};
use helve_testkit::{fake, spec};
use helve_tools::{CallState, Catalogue, Executor, Selection, StoreHandle, ToolSet, Toolkit, View, Worker};
use serde_json::json;

/// An executor with a queue, and a tool that counts how often it ran.
struct Stage {
    executor: Executor,
    catalogue: Catalogue,
    ran: Arc<AtomicUsize>,
}

impl Stage {
    fn new(permission: Permission) -> Self {
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = ran.clone();
        let rules = Rules::default().permission(permission).mode(Mode::Background);
        let tool = fake(spec("wipe").with_rules(rules), move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(Output::text("wiped")) })
        });
        let (catalogue, executor) = (Catalogue::new(), Executor::default());
        catalogue.add_source(Arc::new(ListSource::new("tests", [tool])));
        catalogue.define_set(ToolSet::new("disks", ["wipe"]));
        executor.use_store(StoreHandle::in_memory()).expect("the first");
        Self { executor, catalogue, ran }
    }

    /// Lets a rule hold from now on.
    fn rule(&self, rule: PermissionRule) {
        self.executor.set_policy(Policy::new(vec![rule]));
    }

    fn store(&self) -> StoreHandle {
        self.executor.store().expect("a store").clone()
    }

    fn everything(&self) -> Toolkit {
        Toolkit::everything(&self.catalogue.snapshot(&View::default()))
    }

    /// Makes a call that is accepted.
    async fn accepted(&self, tools: &Toolkit, caller: Caller, grant: Option<(ToolCall, Grant)>) -> CallId {
        let (call, grant) = grant.map_or((ToolCall::new("wipe", json!({"disk": 1})), None), |(call, grant)| (call, Some(grant)));
        let cx = CallContext::new(caller);
        let state = match grant {
            Some(grant) => self.executor.resume(tools, call, grant, &cx).await,
            None => self.executor.call(tools, call, &cx).await,
        };
        let outcome = state.into_outcome();
        assert!(matches!(outcome.status, Status::Accepted), "{outcome:?}");
        outcome.call_id
    }

    /// What becomes of a task in a worker, and how often the tool ran so far.
    async fn worked(&self, id: CallId) -> (TaskState, usize) {
        let worker = Worker::new(self.store(), self.executor.clone(), self.catalogue.clone(), 1);
        worker.run_until_empty(CancellationToken::new()).await.expect("worked");
        (self.task(id).await.state, self.ran.load(Ordering::SeqCst))
    }

    async fn task(&self, id: CallId) -> Task {
        self.store().task(id).await.expect("readable").expect("a task")
    }
}

fn agent() -> Caller {
    Caller::default().agent("ada")
}

fn confirm() -> PermissionRule {
    PermissionRule::default().agent("*").permission(Permission::Confirm)
}

#[tokio::test]
async fn a_rule_that_came_later_wants_the_consent_of_a_person() {
    let stage = Stage::new(Permission::Auto);
    let id = stage.accepted(&stage.everything(), agent(), None).await;
    assert_eq!(stage.task(id).await.consent, None);
    stage.rule(confirm());
    assert_eq!(stage.worked(id).await, (TaskState::Failed, 0));
    let again = stage.store().retry_task(id).await.expect("again").id;
    assert_eq!(stage.worked(again).await, (TaskState::Done, 1), "whoever repeats it consents");
}

#[tokio::test]
async fn a_persons_call_needs_no_further_consent_and_is_denied_by_a_rule() {
    let stage = Stage::new(Permission::Auto);
    let id = stage.accepted(&stage.everything(), Caller::default(), None).await;
    stage.rule(PermissionRule::default().permission(Permission::Confirm));
    assert_eq!(stage.worked(id).await, (TaskState::Done, 1));
    stage.rule(confirm());
    let id = stage.accepted(&stage.everything(), Caller::default(), None).await;
    stage.rule(PermissionRule::for_tool("wipe", Permission::Deny));
    assert_eq!(stage.worked(id).await, (TaskState::Failed, 1));
}

#[tokio::test]
async fn a_call_of_nobody_is_no_persons() {
    let stage = Stage::new(Permission::Auto);
    stage.rule(confirm());
    let definition = stage.catalogue.get("wipe").expect("the tool").digest();
    let new = NewTask::new(ToolCall::new("wipe", json!({})), definition);
    let id = new.call.id;
    stage.store().accept(new).await.expect("accepted");
    assert_eq!(stage.worked(id).await, (TaskState::Failed, 0));
    // A run without the name of an agent is no person either.
    let run = Caller::default().run(helve_core::RunId::mint());
    let id = stage.accepted(&stage.everything(), run, None).await;
    assert_eq!(stage.worked(id).await, (TaskState::Failed, 0));
}

#[tokio::test]
async fn an_approval_is_the_consent_of_a_person() {
    let stage = Stage::new(Permission::Confirm);
    let tools = stage.everything();
    let call = ToolCall::new("wipe", json!({"disk": 1}));
    let CallState::Waiting(request) = stage.executor.call(&tools, call, &CallContext::new(agent())).await else {
        panic!("a person is asked");
    };
    let (id, grant) = (request.id, request.resolve(Verdict::Approve, "ada"));
    let task = stage.accepted(&tools, agent(), Some((request.call, grant))).await;
    assert_eq!(stage.task(task).await.consent.and_then(|consent| consent.approval), Some(id));
    assert_eq!(stage.worked(task).await, (TaskState::Done, 1));
}

#[tokio::test]
async fn a_worker_knows_through_which_set_and_agent_a_call_was_made() {
    let stage = Stage::new(Permission::Confirm);
    stage.rule(PermissionRule::default().set("disks").agent("scribe").permission(Permission::Auto));
    let selection = Selection::default().agent("scribe").sets(["disks"]);
    let tools = stage.catalogue.toolkit(&selection, &View::default()).expect("a toolkit");
    let id = stage.accepted(&tools, Caller::default(), None).await;
    assert_eq!(stage.task(id).await.consent, None, "an agent is no person");
    assert_eq!(stage.worked(id).await, (TaskState::Done, 1));
}
