//! The calls of one turn: every call gets its outcome, in order, whatever the others do.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use helve_core::{CallContext, DynTool, Output, Permission, Rules, ToolCall, ToolError};
use helve_testkit::{fake, spec, toolkit};
use helve_tools::{Executor, ExecutorOptions};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Counts the work that is going on, however it ends.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A tool that ends in one of many ways, as its arguments say.
fn moody(name: &str, rules: Rules, alive: &Arc<AtomicUsize>) -> Arc<dyn DynTool> {
    let alive = alive.clone();
    fake(spec(name).with_rules(rules), move |call, cx| {
        let alive = Alive::new(&alive);
        Box::pin(async move {
            let _alive = alive;
            let number = call.arguments["number"].as_u64().unwrap_or_default();
            tokio::time::sleep(Duration::from_micros(number % 7 * 100)).await;
            match call.arguments["mood"].as_str() {
                Some("fail") => Err(ToolError::failed(number.to_string())),
                Some("panic") => panic!("{number}"),
                Some("hang") => std::future::pending().await,
                Some("leave") => {
                    // Cancels the whole turn's context from within, as a caller who goes away would.
                    cx.cancelled().await;
                    Ok(Output::default())
                }
                _ => Ok(Output::data(json!(number))),
            }
        })
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_give_a_thousand_outcomes_in_order() {
    let alive = Arc::new(AtomicUsize::new(0));
    let short = Rules { timeout: Some(Duration::from_millis(30)), ..Rules::default() };
    let wary = Rules { permission: Permission::Confirm, ..short.clone() };
    let tools = toolkit([moody("moody", short, &alive), moody("wary", wary, &alive)]);
    let executor = Executor::new(ExecutorOptions { grace: Duration::from_millis(5), ..ExecutorOptions::default() });
    let mut random = fastrand::Rng::with_seed(7);
    let calls: Vec<ToolCall> = (0..1_000)
        .map(|number| {
            let mood = *random.choice(&["well", "well", "well", "fail", "panic", "hang", "wary", "nonsense", "unknown"]).expect("a mood");
            let tool = if mood == "wary" {
                "wary"
            } else if mood == "unknown" {
                "nobody"
            } else {
                "moody"
            };
            let arguments = if mood == "nonsense" { json!([number]) } else { json!({"number": number, "mood": mood}) };
            ToolCall::new(tool, arguments)
        })
        .collect();
    let expected: Vec<_> = calls.iter().map(|call| (call.id, call.arguments.clone(), call.tool.clone())).collect();
    let settled = executor.batch(&tools, calls, &CallContext::default()).await;
    assert_eq!(settled.len(), 1_000);
    for (settled, (id, arguments, tool)) in settled.iter().zip(expected) {
        let outcome = json!(settled.outcome);
        assert_eq!(settled.outcome.call_id, id);
        let kind = outcome["error"]["kind"].as_str();
        match arguments["mood"].as_str() {
            _ if &*tool == "nobody" => assert_eq!(kind, Some("unknown_tool")),
            None => assert_eq!(kind, Some("invalid_parameters")),
            Some("fail") => {
                assert_eq!((kind, outcome["error"]["message"].as_str()), (Some("failed"), Some(arguments["number"].to_string().as_str())));
            }
            Some("panic") => assert_eq!(outcome["error"]["message"], format!("the tool panicked: {}", arguments["number"])),
            Some("hang") => assert_eq!(kind, Some("timeout")),
            Some("wary") => {
                let question = settled.question.as_ref().expect("a question");
                assert_eq!((outcome["status"].as_str(), &outcome["approval_id"]), (Some("waiting"), &json!(question.id)));
                assert_eq!(question.call.id, id);
            }
            _ => assert_eq!(outcome["data"], arguments["number"]),
        }
    }
    assert_eq!(alive.load(Ordering::SeqCst), 0, "work was left behind");
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "a task was left behind");
}

/// The same with a caller who goes away in the middle: what had not ended is cancelled, and still has its outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_that_are_cancelled_give_a_thousand_outcomes_in_order() {
    let alive = Arc::new(AtomicUsize::new(0));
    let wary = Rules { permission: Permission::Confirm, ..Rules::default() };
    let tools = toolkit([moody("moody", Rules::default(), &alive), moody("wary", wary, &alive)]);
    let executor = Executor::new(ExecutorOptions { grace: Duration::from_millis(5), ..ExecutorOptions::default() });
    let mut random = fastrand::Rng::with_seed(11);
    let calls: Vec<ToolCall> = (0..1_000)
        .map(|number| {
            let mood = *random.choice(&["well", "well", "fail", "panic", "hang", "leave", "wary"]).expect("a mood");
            ToolCall::new(if mood == "wary" { "wary" } else { "moody" }, json!({"number": number, "mood": mood}))
        })
        .collect();
    let expected: Vec<_> = calls.iter().map(|call| (call.id, call.arguments["mood"].clone())).collect();
    let cancel = CancellationToken::new();
    let cx = CallContext::default().with_cancel(cancel.clone());
    let (settled, ()) = tokio::join!(executor.batch(&tools, calls, &cx), async {
        // The places fill up with calls that hang, so this many are sure to be inside.
        while alive.load(Ordering::SeqCst) < 60 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(settled.len(), 1_000);
    let mut cancelled = 0;
    for (settled, (id, mood)) in settled.iter().zip(expected) {
        let outcome = json!(settled.outcome);
        assert_eq!(settled.outcome.call_id, id);
        match (outcome["error"]["kind"].as_str(), mood.as_str()) {
            (Some("cancelled"), _) => cancelled += 1,
            (Some("failed"), Some("fail" | "panic")) => {}
            (None, Some("well")) => assert_eq!(outcome["success"], json!(true)),
            (None, Some("wary")) => assert_eq!(outcome["status"], "waiting"),
            other => panic!("{other:?}: {outcome}"),
        }
    }
    assert!(cancelled > 60, "those inside and those that waited for a place: {cancelled}");
    assert_eq!(
        (alive.load(Ordering::SeqCst), tokio::runtime::Handle::current().metrics().num_alive_tasks()),
        (0, 0),
        "nothing is left behind"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_leaves_leaves_nothing_behind() {
    let alive = Arc::new(AtomicUsize::new(0));
    let tools = toolkit([moody("moody", Rules::default(), &alive)]);
    let calls = |mood: &str| (0..100).map(|number| ToolCall::new("moody", json!({"number": number, "mood": mood}))).collect::<Vec<_>>();
    let cancel = CancellationToken::new();
    let cx = CallContext::default().with_cancel(cancel.clone());
    let executor = Executor::new(ExecutorOptions { grace: Duration::from_millis(5), ..ExecutorOptions::default() });

    let batch = executor.batch(&tools, calls("leave"), &cx);
    let (settled, ()) = tokio::join!(batch, async {
        while alive.load(Ordering::SeqCst) < 10 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert!(settled.iter().all(|settled| json!(settled.outcome)["error"]["kind"] == "cancelled"), "those that waited for a place, too");
    assert_eq!(alive.load(Ordering::SeqCst), 0);

    let abandoned = tokio::time::timeout(Duration::from_millis(30), executor.batch(&tools, calls("hang"), &CallContext::default())).await;
    assert!(abandoned.is_err(), "it hangs until it is dropped");
    while alive.load(Ordering::SeqCst) > 0 || tokio::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exclusive_tool_runs_alone_and_in_its_turn() {
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = |name: &'static str, rules: Rules| {
        let log = log.clone();
        fake(spec(name).with_rules(rules), move |_, _| {
            let log = log.clone();
            Box::pin(async move {
                log.lock().expect("a log").push(format!("{name} in"));
                tokio::time::sleep(Duration::from_millis(5)).await;
                log.lock().expect("a log").push(format!("{name} out"));
                Ok(Output::default())
            })
        })
    };
    let tools = toolkit([noted("shared", Rules::default()), noted("alone", Rules { exclusive: true, ..Rules::default() })]);
    let calls = ["shared", "shared", "alone", "shared"].map(|name| ToolCall::new(name, json!({}))).to_vec();
    Executor::default().batch(&tools, calls, &CallContext::default()).await;
    let log = log.lock().expect("a log").clone();
    assert_eq!(log, ["shared in", "shared in", "shared out", "shared out", "alone in", "alone out", "shared in", "shared out"]);
}

#[tokio::test]
async fn a_broken_layer_costs_only_its_own_call() {
    struct Broken;
    impl helve_core::Layer for Broken {
        async fn call(&self, call: &ToolCall, cx: &CallContext, next: helve_core::Next<'_>) -> Result<Output, ToolError> {
            assert!(call.arguments["number"] != 1, "the layer is broken");
            next.run(call, cx).await
        }
    }
    let alive = Arc::default();
    let executor = Executor::new(ExecutorOptions { layers: vec![Arc::new(Broken)], ..ExecutorOptions::default() });
    let calls = (0..3).map(|number| ToolCall::new("moody", json!({"number": number}))).collect();
    let settled = executor.batch(&toolkit([moody("moody", Rules::default(), &alive)]), calls, &CallContext::default()).await;
    assert_eq!(settled.iter().map(|settled| settled.outcome.is_success()).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(settled[1].outcome.text(), "failed: a layer panicked: the layer is broken");
}
