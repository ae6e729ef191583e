//! Cancelled, timed out, dropped: the program and everything it started are killed, however they resist.

use std::sync::Arc;

use helve_core::{CallContext, CallId, DynTool, ErrorKind, ToolCall, ToolError};
use helve_testkit::toolkit;
use helve_tools::Executor;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::{Project, marked, run, until, with_variable};

/// A call that runs until it is stopped.
struct Running {
    id: CallId,
    cancel: CancellationToken,
    work: JoinHandle<Result<helve_core::Output, ToolError>>,
}

impl Running {
    fn start(tool: &Arc<dyn DynTool>) -> Self {
        let (tool, call, cancel) = (tool.clone(), ToolCall::new("test", json!({})), CancellationToken::new());
        let (id, cx) = (call.id, CallContext::default().with_cancel(cancel.clone()));
        let work = tokio::spawn(async move { run(&tool, &call, &cx).await });
        Self { id, cancel, work }
    }

    async fn cancelled(self) {
        self.cancel.cancel();
        let result = self.work.await.expect("no panic");
        assert_eq!(result.expect_err("cancelled").kind(), ErrorKind::Cancelled);
        assert!(marked(self.id).is_empty(), "nothing is left");
    }
}

#[tokio::test]
async fn a_cancelled_program_is_asked_first() {
    let project = Project::new();
    let tool = project.sh("trap 'echo x > tidied; exit' TERM; echo x > ready; while :; do sleep 0.01; done");
    let running = Running::start(&tool);
    project.appears("ready").await;
    running.cancelled().await;
    assert!(project.has("tidied"));
}

/// The shell exits at once; its children have their own grace period.
#[tokio::test]
async fn children_are_asked_too() {
    let project = Project::new();
    project.write("slow", "trap 'sleep 0.1; echo x > tidied; exit' TERM; echo x > ready; while :; do sleep 0.01; done", "644");
    let running = Running::start(&project.sh("sh ./slow; true"));
    project.appears("ready").await;
    running.cancelled().await;
    assert!(project.has("tidied"));
}

#[tokio::test]
async fn who_ignores_the_question_is_killed() {
    let project = Project::new();
    let running = Running::start(&project.sh("trap '' TERM HUP INT; sleep 1000 & echo x > ready; sleep 1000; sleep 1000"));
    project.appears("ready").await;
    running.cancelled().await;
}

#[tokio::test]
async fn a_daemon_is_swept_after_a_cancel() {
    let project = Project::new();
    let running = Running::start(&project.sh("setsid sh -c 'echo x > ready; exec sleep 1000' & sleep 1000"));
    project.appears("ready").await;
    running.cancelled().await;
}

#[tokio::test]
async fn floods_can_be_cancelled() {
    let project = Project::new();
    let running = Running::start(&project.sh("echo x > ready; yes >&2"));
    project.appears("ready").await;
    running.cancelled().await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_starts_does_not_start() {
    let project = Project::new();
    let running = Running::start(&project.sh("echo x > started"));
    running.cancelled().await;
    assert!(!project.has("started"));
}

#[tokio::test]
async fn dropping_the_call_kills_the_group_and_its_daemons() {
    let project = Project::new();
    let script = "trap '' TERM; sleep 1000 & setsid sh -c 'echo x > ready; exec sleep 1000' & sleep 1000";
    let running = Running::start(&project.sh(script));
    project.appears("ready").await;
    assert!(marked(running.id).len() >= 3);
    running.work.abort();
    until("all are gone", || marked(running.id).is_empty()).await;
}

/// A program that uses Helve exits: its runtime is dropped while calls are running.
#[test]
fn the_end_of_the_runtime_kills_the_group_and_its_daemons() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let (project, first) = (Project::new(), runtime());
    let running = first.block_on(async {
        let running = Running::start(&project.sh("setsid sh -c 'echo x > ready; exec sleep 1000' & sleep 1000"));
        project.appears("ready").await;
        running
    });
    drop(first);
    runtime().block_on(until("all are gone", || marked(running.id).is_empty()));
}

#[tokio::test]
async fn time_is_up_through_the_layers() {
    let project = Project::new();
    let tool = project.tool(json!({"command": ["sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000"], "timeout": "100ms"}));
    let call = ToolCall::new("test", json!({}));
    let id = call.id;
    let outcome = Executor::default().execute(&toolkit([tool]), call, &CallContext::default()).await;
    assert_eq!(outcome.error().map(ToolError::kind), Some(ErrorKind::Timeout));
    assert!(marked(id).is_empty(), "the second of grace was enough");
}

/// A retry has the same call id; stopping the first attempt must not stop the second.
#[tokio::test]
async fn ending_one_attempt_spares_the_next() {
    let project = Project::new();
    let script = "echo $HELVE_ATTEMPT_ID > started; setsid sleep 1000 & while [ ! -e go ]; do sleep 0.01; done; echo survived";
    let (tool, call) = (project.sh(script), ToolCall::new("test", json!({})));
    let start = async || {
        let (tool, call) = (tool.clone(), call.clone());
        let work = tokio::spawn(async move { run(&tool, &call, &CallContext::default()).await });
        project.appears("started").await;
        let id = std::fs::read_to_string(project.path().join("started")).expect("an id");
        std::fs::remove_file(project.path().join("started")).expect("removed");
        (work, format!("HELVE_ATTEMPT_ID={}", id.trim()))
    };
    let ((first, first_mark), (second, second_mark)) = (start().await, start().await);
    first.abort();
    until("the first is gone", || with_variable(&first_mark).is_empty()).await;
    project.write("go", "x", "644");
    assert_eq!(second.await.expect("no panic").expect("an output").text, "survived");
    assert!(with_variable(&second_mark).is_empty());
}
