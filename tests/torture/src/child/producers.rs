//! Clients that put calls into the queue, and read their results.

use std::time::Duration;

use helve_core::store::NewTask;
use helve_core::{CallId, Caller, ToolCall};
use serde_json::json;

use super::Scene;
use super::tools::Kind;

/// Calls, half of which must not run twice. Some are made by a run, which is notified of their results.
pub(super) async fn produce(scene: Scene) {
    let mut mine: Vec<CallId> = Vec::new();
    loop {
        let kind = if fastrand::bool() { &scene.once } else { &scene.again };
        let run = if fastrand::u8(..4) == 0 { scene.store.runs(None, 8).await.expect("a list").pop() } else { None };
        let caller = Caller::default().run(run.map(|run| run.id));
        let task = task(kind, ToolCall::new(kind.spec.name().clone(), json!({})), caller);
        let id = task.call.id;
        // A client that does not know whether a call was accepted sends it again.
        let again = (fastrand::u8(..8) == 0).then(|| task.clone());
        scene.store.accept(task).await.expect("accepted");
        if let Some(again) = again {
            scene.store.accept(again).await.expect("known");
        }
        mine.push(id);
        let looked_at = mine[fastrand::usize(..mine.len())];
        scene.store.task(looked_at).await.expect("readable");
        tokio::time::sleep(Duration::from_micros(fastrand::u64(..3000))).await;
    }
}

pub(super) fn task(kind: &Kind, call: ToolCall, caller: Caller) -> NewTask {
    NewTask { caller, idempotent: kind.idempotent, priority: fastrand::i8(-1..=1), ..NewTask::new(call, kind.definition) }
}
