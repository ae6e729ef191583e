//! Recorded runs whose future or stream is dropped, as a web server does when a client goes away: they go back to the store.

#![cfg(feature = "store")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helve::agent::cancel_run;
use helve::id::RunId;
use helve::prelude::*;
use helve::store::{RunRecord, RunState};
use helve::store::{StoreError, StoreHandle};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Notify;

/// A store of each kind.
async fn records() -> Vec<(&'static str, StoreHandle, Option<TempDir>)> {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let file = Helve::new().open_store(Some(&url)).await.expect("a store");
    vec![("memory", StoreHandle::in_memory(), None), ("SQLite", file, Some(folder))]
}

/// A tool that hangs until it may go on, and says when it began.
struct Hang {
    began: Arc<Notify>,
    may_end: Arc<AtomicBool>,
}

impl Tool for Hang {
    fn name(&self) -> &str {
        "look"
    }

    fn description(&self) -> &str {
        "Looks something up."
    }

    fn parameters_schema(&self) -> serde_json::Value {
        json!({"type": "object"})
    }

    fn rules(&self) -> Rules {
        Rules::default().idempotent(true)
    }

    async fn execute(&self, _: &serde_json::Value) -> ToolResult {
        self.began.notify_one();
        if !self.may_end.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        ToolResult::success("seen")
    }
}

struct Scene {
    store: StoreHandle,
    began: Arc<Notify>,
    may_end: Arc<AtomicBool>,
}

impl Scene {
    fn new(store: StoreHandle) -> Self {
        Self { store, began: Arc::default(), may_end: Arc::default() }
    }

    fn agent(&self, model: ScriptedModel) -> Agent {
        let mut agent = Agent::new(model).with_store(self.store.clone()).expect("the first");
        agent.register_tool(Hang { began: self.began.clone(), may_end: self.may_end.clone() }).expect("a tool");
        agent
    }

    /// Drops a run in the middle of a call.
    async fn drop_run(&self) -> RunId {
        let mut agent = self.agent(ScriptedModel::new().calls([("look", json!({}))]));
        tokio::select! {
            ended = agent.run("look") => panic!("the tool came back: {ended:?}"),
            () = self.began.notified() => {}
        }
        self.only_run().await.id
    }

    async fn only_run(&self) -> RunRecord {
        let mut runs = self.store.runs(None, 10).await.expect("a list");
        assert_eq!(runs.len(), 1);
        runs.pop().expect("a run")
    }

    async fn has_state(&self, state: RunState) {
        let mut changes = self.store.changes();
        while self.only_run().await.state != state {
            changes.changed().await.expect("a store");
        }
    }
}

#[tokio::test]
async fn a_dropped_run_is_given_back_and_goes_on() {
    for (name, store, _folder) in records().await {
        let scene = Scene::new(store);
        let run = scene.drop_run().await;
        scene.has_state(RunState::Ready).await;
        assert_eq!(scene.only_run().await.holder, None, "{name}");
        scene.may_end.store(true, Ordering::SeqCst);
        let answer = scene.agent(ScriptedModel::new().says("found it")).resume_run(run).await.expect(name);
        assert_eq!(answer.text, "found it");
        assert_eq!(scene.only_run().await.state, RunState::Done);
    }
}

#[tokio::test]
async fn nobody_waits_until_a_dropped_run_is_given_back() {
    for (name, store, _folder) in records().await {
        let scene = Scene::new(store);
        let run = scene.drop_run().await;
        // Dropped a second time, by whoever goes on with it.
        let mut agent = scene.agent(ScriptedModel::new());
        tokio::select! {
            ended = agent.resume_run(run) => panic!("{name}: {ended:?}"),
            () = scene.began.notified() => {}
        }
        scene.may_end.store(true, Ordering::SeqCst);
        let answer = scene.agent(ScriptedModel::new().says("found it")).resume_run(run).await.expect(name);
        assert_eq!(answer.text, "found it");
        assert_eq!(scene.only_run().await.state, RunState::Done);
    }
}

#[tokio::test]
async fn a_dropped_stream_leaves_a_run_that_can_be_cancelled() {
    for (name, store, _folder) in records().await {
        let scene = Scene::new(store);
        let mut agent = scene.agent(ScriptedModel::new().calls([("look", json!({}))]));
        let mut stream = agent.run_stream("look").await.expect("a run");
        tokio::select! {
            text = stream.next_text() => panic!("{name}: {text:?}"),
            () = scene.began.notified() => {}
        }
        drop(stream);
        let run = scene.only_run().await.id;
        assert_eq!(cancel_run(&scene.store, run).await.expect(name), RunState::Cancelled);
        assert_eq!(scene.only_run().await.state, RunState::Cancelled);
    }
}

#[tokio::test]
async fn what_this_process_drives_is_taken_by_nobody() {
    for (name, store, _folder) in records().await {
        let scene = Scene::new(store);
        let mut agent = scene.agent(ScriptedModel::new().calls([("look", json!({}))]));
        let driven = tokio::spawn(async move { agent.run("look").await.map(|answer| answer.text) });
        scene.began.notified().await;
        let run = scene.only_run().await.id;
        let error = scene.agent(ScriptedModel::new()).resume_run(run).await.expect_err("driven");
        assert!(matches!(&error, AgentError::Storage(StoreError::Conflict(message)) if message.contains("this process")), "{error}");
        let other = Scene::new(StoreHandle::new(scene.store.inner().clone()));
        let error = other.agent(ScriptedModel::new()).resume_run(run).await.expect_err("driven");
        assert!(error.to_string().contains("another process"), "{error}");
        assert_eq!(cancel_run(&scene.store, run).await.expect(name), RunState::Running);
        driven.await.expect("no panic").expect_err("cancelled");
        assert_eq!(scene.only_run().await.state, RunState::Cancelled);
    }
}
