//! The calls of one turn: every call gets its result, in order, whatever the others do.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use helve_agent::{Agent, AgentOptions, RunLimits, ScriptedModel};
use helve_core::{
    ApprovalRequest, CallContext, Decision, DynTool, Layer, Message, MessageBody, Next, Output, Permission, Rules, ToolCall, ToolError,
};
use helve_testkit::{fake, spec};
use helve_tools::{Catalogue, Executor, ExecutorOptions};
use serde_json::{Value, json};

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
                Some("fail") => Err(ToolError::failed(format!("[{number}]"))),
                Some("panic") => panic!("[{number}]"),
                Some("hang") => std::future::pending().await,
                Some("leave") => {
                    cx.cancelled().await;
                    Ok(Output::default())
                }
                _ => Ok(Output::text(format!("[{number}]"))),
            }
        })
    })
}

/// An agent with these tools whose model makes these calls in one turn.
fn agent(tools: impl IntoIterator<Item = Arc<dyn DynTool>>, model: ScriptedModel, options: ExecutorOptions) -> Agent {
    let catalogue = Catalogue::new();
    catalogue.register_all(tools).expect("tools");
    let executor = Executor::new(options.grace(Duration::from_millis(5)));
    let limits = RunLimits::default().max_calls(10_000).same_calls(10_000);
    Agent::with_tools(model, catalogue, executor, None).with_options(AgentOptions::default().limits(limits))
}

/// The results in the order in which the model is told of them.
fn results(messages: &[Arc<Message>]) -> Vec<String> {
    let told = messages.iter().filter_map(|message| match message.body() {
        MessageBody::Tool { text, .. } => Some(text.clone()),
        _ => None,
    });
    told.collect()
}

fn random_calls(seed: u64, moods: &[&'static str]) -> Vec<(&'static str, Value)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let call = |number: u64| {
        let mood = *random.choice(moods).expect("a mood");
        let tool = match mood {
            "wary" => "wary",
            "unknown" => "nobody",
            _ => "moody",
        };
        (tool, json!({"number": number, "mood": mood}))
    };
    (0..1_000).map(call).collect()
}

async fn nothing_is_left(alive: &Arc<AtomicUsize>) {
    while alive.load(Ordering::SeqCst) > 0 || tokio::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_give_a_thousand_results_in_order() {
    let alive = Arc::new(AtomicUsize::new(0));
    let short = Rules::default().timeout(Duration::from_millis(30));
    let wary = short.clone().permission(Permission::Confirm);
    let calls = random_calls(7, &["well", "well", "well", "fail", "panic", "hang", "wary", "unknown"]);
    let model = ScriptedModel::new().calls(calls.clone()).says("done");
    let tools = [moody("moody", short, &alive), moody("wary", wary, &alive)];
    let approver = |request: ApprovalRequest| async move {
        let even = request.call.arguments["number"].as_u64().is_some_and(|number| number % 2 == 0);
        if even { Decision::Approve } else { Decision::Deny { reason: None } }
    };
    let mut agent = agent(tools, model, ExecutorOptions::default()).with_approver(approver);
    assert_eq!(agent.run("go").await.expect("an answer").text, "done");
    let results = results(&agent.conversation().messages);
    assert_eq!(results.len(), 1_000);
    for (result, (tool, arguments)) in results.iter().zip(&calls) {
        let number = arguments["number"].as_u64().expect("a number");
        let expected = match arguments["mood"].as_str().expect("a mood") {
            _ if *tool == "nobody" => "no tool `nobody`".to_owned(),
            "hang" => "timeout".to_owned(),
            "panic" => format!("the tool panicked: [{number}]"),
            "wary" if number % 2 == 1 => "the user denied the call".to_owned(),
            _ => format!("[{number}]"),
        };
        assert!(result.contains(&expected), "{arguments}: {result}");
    }
    nothing_is_left(&alive).await;
}

/// The same with someone who cancels in the middle: what had not ended is cancelled, and still has its result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_that_are_cancelled_give_a_thousand_results_in_order() {
    let alive = Arc::new(AtomicUsize::new(0));
    let calls = random_calls(11, &["well", "well", "fail", "panic", "hang", "leave"]);
    let model = ScriptedModel::new().calls(calls.clone()).says("done");
    let mut agent = agent([moody("moody", Rules::default(), &alive)], model, ExecutorOptions::default());
    let stream = agent.run_stream("go").await.expect("a run");
    let cancel = stream.canceller();
    let (ended, ()) = tokio::join!(stream.finish(), async {
        // The places fill up with calls that hang, so this many are sure to be inside.
        while alive.load(Ordering::SeqCst) < 60 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert!(ended.is_err());
    let results = results(&agent.conversation().messages);
    assert_eq!(results.len(), 1_000);
    let mut cancelled = 0;
    for (result, (_, arguments)) in results.iter().zip(&calls) {
        if result.contains("cancelled") {
            cancelled += 1;
        } else {
            assert!(result.contains(&format!("[{}]", arguments["number"])), "{arguments}: {result}");
        }
    }
    assert!(cancelled > 60, "those inside and those that waited for a place: {cancelled}");
    nothing_is_left(&alive).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_drops_a_run_leaves_nothing_behind() {
    let alive = Arc::new(AtomicUsize::new(0));
    let calls: Vec<_> = (0..100).map(|number| ("moody", json!({"number": number, "mood": "hang"}))).collect();
    let model = ScriptedModel::new().calls(calls);
    let mut agent = agent([moody("moody", Rules::default(), &alive)], model, ExecutorOptions::default());
    tokio::select! {
        _ = agent.run("go") => panic!("it hangs until it is dropped"),
        () = async { while alive.load(Ordering::SeqCst) < 60 { tokio::task::yield_now().await } } => {}
    }
    nothing_is_left(&alive).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exclusive_tool_runs_alone_and_in_its_turn() {
    let log = Arc::new(Mutex::new(Vec::new()));
    // The first two calls end only when both have begun.
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let noted = |name: &'static str, rules: Rules| {
        let (log, both) = (log.clone(), both.clone());
        fake(spec(name).with_rules(rules), move |_, _| {
            let (log, both) = (log.clone(), both.clone());
            Box::pin(async move {
                log.lock().expect("a log").push(format!("{name} in"));
                if log.lock().expect("a log").iter().filter(|line| line.ends_with("in")).count() <= 2 {
                    both.wait().await;
                }
                // Time for a call that must not run beside this one.
                tokio::time::sleep(Duration::from_millis(5)).await;
                log.lock().expect("a log").push(format!("{name} out"));
                Ok(Output::default())
            })
        })
    };
    let tools = [noted("shared", Rules::default()), noted("alone", Rules::default().exclusive(true))];
    let calls = ["shared", "shared", "alone", "shared"].map(|name| (name, json!({})));
    let model = ScriptedModel::new().calls(calls).says("done");
    agent(tools, model, ExecutorOptions::default()).run("go").await.expect("an answer");
    let log = log.lock().expect("a log").clone();
    assert_eq!(log, ["shared in", "shared in", "shared out", "shared out", "alone in", "alone out", "shared in", "shared out"]);
}

#[tokio::test]
async fn a_broken_layer_costs_only_its_own_call() {
    struct Broken;
    impl Layer for Broken {
        async fn call(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> Result<Output, ToolError> {
            assert!(call.arguments["number"] != 1, "the layer is broken");
            next.run(call, cx).await
        }
    }
    let calls: Vec<_> = (0..3).map(|number| ("moody", json!({"number": number}))).collect();
    let model = ScriptedModel::new().calls(calls).says("done");
    let options = ExecutorOptions::default().layers(vec![Arc::new(Broken)]);
    let mut agent = agent([moody("moody", Rules::default(), &Arc::default())], model, options);
    agent.run("go").await.expect("an answer");
    let results = results(&agent.conversation().messages);
    assert!(results[0].contains("[0]") && results[2].contains("[2]"), "{results:?}");
    assert!(results[1].contains("a layer panicked: the layer is broken"), "{results:?}");
}
