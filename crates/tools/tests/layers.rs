//! Each concern of a call, through the executor.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use helve_core::{
    CacheRule, CallContext, Caller, ConversationId, ErrorKind, Layer, Mode, Next, Output, Rules, RunId, Schema, ToolCall, ToolError,
};
use helve_testkit::{call, echo, fake, spec, spec_of, toolkit};
use helve_tools::{Executor, ExecutorOptions};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const LONG: Duration = Duration::from_hours(1);

#[tokio::test]
async fn arguments_are_read_completed_and_checked() {
    let input =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}, "unit": {"type": "string", "default": "m"}}});
    let tools = toolkit([fake(spec_of("walk", input), |call, _| Box::pin(async move { Ok(Output::data(call.arguments.clone())) }))]);
    let executor = Executor::default();
    assert_eq!(call(&executor, &tools, "walk", json!({"n": "5"})).await["data"], json!({"n": 5, "unit": "m"}));
    let wrong = call(&executor, &tools, "walk", json!({"n": "far", "unti": 1})).await;
    assert_eq!(wrong["error"]["kind"], "invalid_parameters");
    assert_eq!(
        wrong["error"]["message"],
        "/unti: unknown argument, expected only `n`, `unit` (did you mean `unit`?); /n: expected integer, got string \"far\""
    );
    assert_eq!(wrong["error"]["details"]["problems"][1], json!({"path": "/n", "expected": "integer", "got": "string \"far\""}));
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let refused = call(&executor, &tools, "walk", json!({"n": deep})).await;
    assert!(refused["error"]["message"].as_str().is_some_and(|message| message.contains("64 levels")), "{refused}");
}

#[tokio::test]
async fn text_that_is_read_as_json_counts_as_what_it_is() {
    let lists = json!({"type": "object", "properties": {"a": {"type": "array"}}});
    let tools = toolkit([fake(spec_of("list", lists), |_, _| Box::pin(async { Ok(Output::default()) }))]);
    let many = format!("[{}0]", "0,".repeat(9_998));
    let outcome = call(&Executor::default(), &tools, "list", json!({"a": many})).await;
    assert_eq!(outcome["error"]["message"], "the arguments were not accepted: the JSON has more than 10000 values");
}

#[tokio::test]
async fn a_changed_limit_holds_at_once() {
    let limited = |most| crowd("busy", Rules::default().concurrency(NonZeroU32::new(most)));
    let source = Arc::new(helve_core::ListSource::new("live", []));
    let catalogue = helve_tools::Catalogue::new();
    catalogue.add_source(source.clone());
    let executor = Executor::default();
    for most in [8, 1] {
        let (seen, tool) = limited(most);
        source.set(helve_core::SourceState::Ready([tool].into_iter().collect()));
        let tools = helve_tools::Toolkit::everything(&catalogue.snapshot(&helve_tools::View::default()));
        kinds(&executor, &tools, "busy", 12).await;
        assert_eq!(seen.load(Ordering::SeqCst), most as usize);
    }
}

#[tokio::test]
async fn the_name_of_an_unknown_tool_cannot_forge_lines() {
    let name = format!("x\n2026 INFO forged\u{1b}[31m{}", "y".repeat(100_000));
    let outcome = call(&Executor::default(), &toolkit([]), &name, json!({})).await;
    assert!(outcome["tool"].as_str().is_some_and(|tool| tool.starts_with("x\\n2026 INFO forged\\u{1b}") && tool.len() < 200), "{outcome}");
    assert!(outcome["error"]["message"].as_str().is_some_and(|message| !message.contains('\n') && message.len() < 300), "{outcome}");
}

#[tokio::test]
async fn an_unknown_tool_is_named_with_the_nearest() {
    let tools = toolkit([echo("get_time", Rules::default())]);
    let outcome = call(&Executor::default(), &tools, "get_tiem", json!({})).await;
    assert_eq!(outcome["error"]["message"], "there is no tool `get_tiem`; did you mean `get_time`?");
    assert_eq!(outcome["tool"], "get_tiem");
}

#[tokio::test(start_paused = true)]
async fn a_slow_tool_is_told_to_stop_given_a_second_and_dropped() {
    struct Dropped(Arc<AtomicU32>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicU32::new(0));
    let told = Arc::new(AtomicU32::new(0));
    let (seen_dropped, seen_told) = (dropped.clone(), told.clone());
    let rules = Rules::default().timeout(Duration::from_secs(5));
    let slow = fake(spec("slow").with_rules(rules), move |_, cx| {
        let (guard, told) = (Dropped(seen_dropped.clone()), seen_told.clone());
        Box::pin(async move {
            let _guard = guard;
            cx.cancelled().await;
            told.fetch_add(1, Ordering::SeqCst);
            std::future::pending().await
        })
    });
    let begun = tokio::time::Instant::now();
    let outcome = call(&Executor::default(), &toolkit([slow]), "slow", json!({})).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(6), "five seconds and one of grace");
    assert_eq!(outcome["error"], json!({"kind": "timeout", "message": "no result after 5s", "details": {"timeout_ms": 5000}}));
    assert_eq!((told.load(Ordering::SeqCst), dropped.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_default_timeout_is_thirty_seconds() {
    let slow = fake(spec("slow"), |_, _| Box::pin(std::future::pending()));
    let begun = tokio::time::Instant::now();
    call(&Executor::default(), &toolkit([slow]), "slow", json!({})).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(31));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_ends_at_once_if_the_tool_listens() {
    let polite = fake(spec("polite"), |_, cx| {
        Box::pin(async move {
            cx.cancelled().await;
            Ok(Output::text("tidied up"))
        })
    });
    let tools = toolkit([polite]);
    let cancel = CancellationToken::new();
    let cx = CallContext::default().with_cancel(cancel.clone());
    let executor = Executor::default();
    let begun = tokio::time::Instant::now();
    let (outcome, ()) = tokio::join!(executor.execute(&tools, ToolCall::new("polite", json!({})), &cx), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        cancel.cancel();
    });
    assert_eq!(outcome.error().map(ToolError::kind), Some(ErrorKind::Cancelled));
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    let never_run = executor.execute(&tools, ToolCall::new("polite", json!({})), &cx).await;
    assert_eq!(never_run.error().map(ToolError::kind), Some(ErrorKind::Cancelled), "a cancelled caller starts nothing");
}

#[tokio::test]
async fn a_panic_is_a_failed_call() {
    let before = fake(spec("before"), |_, _| panic!("before the future"));
    let inside = fake(spec("inside"), |_, _| Box::pin(async { panic!("inside {}", 1 + 1) }));
    let tools = toolkit([before, inside]);
    let executor = Executor::default();
    assert_eq!(call(&executor, &tools, "before", json!({})).await["error"]["message"], "the tool panicked: before the future");
    assert_eq!(call(&executor, &tools, "inside", json!({})).await["error"]["message"], "the tool panicked: inside 2");
}

fn flaky(rules: Rules, failures: u32, error: fn() -> ToolError) -> (Arc<AtomicU32>, helve_tools::Toolkit) {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let tool = fake(spec("flaky").with_rules(rules), move |_, _| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { if run < failures { Err(error()) } else { Ok(Output::text("at last")) } })
    });
    (runs, toolkit([tool]))
}

fn unreachable_error() -> ToolError {
    ToolError::new(ErrorKind::Unreachable, "no route")
}

#[tokio::test(start_paused = true)]
async fn transient_failures_of_idempotent_tools_are_tried_again() {
    let executor = Executor::default();
    let idempotent = Rules::default().retries(2).idempotent(true);
    let (runs, tools) = flaky(idempotent.clone(), 2, unreachable_error);
    let outcome = call(&executor, &tools, "flaky", json!({})).await;
    assert_eq!(
        (outcome["text"].as_str(), &outcome["metadata"], runs.load(Ordering::SeqCst)),
        (Some("at last"), &json!({"attempts": 3}), 3)
    );

    let (runs, tools) = flaky(idempotent.clone(), 9, unreachable_error);
    let outcome = call(&executor, &tools, "flaky", json!({})).await;
    assert_eq!((&outcome["error"]["details"], runs.load(Ordering::SeqCst)), (&json!({"attempts": 3}), 3));

    let (runs, tools) = flaky(idempotent, 9, || ToolError::failed("for good"));
    call(&executor, &tools, "flaky", json!({})).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1, "a failure that is not transient is final");

    let (runs, tools) = flaky(Rules::default().retries(2), 9, unreachable_error);
    call(&executor, &tools, "flaky", json!({})).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1, "a tool that is not idempotent never runs twice");
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_as_long_as_it_was_told() {
    let rules = Rules::default().retries(1).idempotent(true);
    let limited = || ToolError::new(ErrorKind::RateLimited, "slow down").retry_after(Duration::from_secs(7));
    let (_, tools) = flaky(rules.clone(), 1, limited);
    let begun = tokio::time::Instant::now();
    assert_eq!(call(&Executor::default(), &tools, "flaky", json!({})).await["success"], json!(true));
    assert_eq!(begun.elapsed(), Duration::from_secs(7));
    let (runs, tools) = flaky(rules, 1, || ToolError::new(ErrorKind::RateLimited, "come back tomorrow").retry_after(LONG * 24));
    assert_eq!(call(&Executor::default(), &tools, "flaky", json!({})).await["success"], json!(false));
    assert_eq!(runs.load(Ordering::SeqCst), 1, "the model decides about waits this long");
}

/// A tool that says how many of its calls ran at once.
fn crowd(name: &str, rules: Rules) -> (Arc<AtomicUsize>, Arc<dyn helve_core::DynTool>) {
    let most = Arc::new(AtomicUsize::new(0));
    let (seen, now) = (most.clone(), Arc::new(AtomicUsize::new(0)));
    let tool = fake(spec(name).with_rules(rules), move |_, _| {
        let (seen, now) = (seen.clone(), now.clone());
        Box::pin(async move {
            let inside = now.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(inside, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(Output::default())
        })
    });
    (most, tool)
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_limit_wait_and_beyond_the_line_are_refused() {
    let (most_all, everyone) = crowd("everyone", Rules::default());
    let (most_two, two) = crowd("two", Rules::default().concurrency(NonZeroU32::new(2)));
    let tools = toolkit([everyone, two]);
    let executor = Executor::new(ExecutorOptions::default().concurrency(4).waiting(8));
    assert!(kinds(&executor, &tools, "everyone", 12).await.iter().all(Option::is_none));
    assert_eq!(most_all.load(Ordering::SeqCst), 4);
    let refused = kinds(&executor, &tools, "everyone", 20).await;
    assert_eq!(refused.iter().filter(|kind| kind.as_deref() == Some("rate_limited")).count(), 8, "{refused:?}");
    assert!(kinds(&executor, &tools, "two", 10).await.iter().all(Option::is_none));
    assert_eq!(most_two.load(Ordering::SeqCst), 2);
}

/// Makes some calls at once and gives the error kinds.
async fn kinds(executor: &Executor, tools: &helve_tools::Toolkit, name: &str, count: usize) -> Vec<Option<String>> {
    let outcomes = join_all((0..count).map(|_| call(executor, tools, name, json!({})))).await;
    outcomes.iter().map(|outcome| outcome["error"]["kind"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_result_is_held_to_its_schema() {
    let promise = Schema::new(json!({"type": "object", "required": ["sum"]})).expect("a schema");
    let liar = fake(spec("liar").with_output(promise), |call, _| Box::pin(async move { Ok(Output::data(call.arguments.clone())) }));
    let texts = Schema::new(json!({"type": "string"})).expect("a schema");
    let text = fake(spec("text").with_output(texts), |_, _| Box::pin(async { Ok(Output::text("words")) }));
    let tools = toolkit([liar, text]);
    let executor = Executor::default();
    assert_eq!(call(&executor, &tools, "liar", json!({"sum": 1})).await["success"], json!(true));
    let outcome = call(&executor, &tools, "liar", json!({"total": 1})).await;
    assert_eq!(outcome["error"]["kind"], "invalid_output");
    assert_eq!(call(&executor, &tools, "text", json!({})).await["success"], json!(true));
}

#[tokio::test]
async fn a_background_tool_is_refused_until_there_is_a_store() {
    let tools = toolkit([echo("later", Rules::default().mode(Mode::Background))]);
    let outcome = call(&Executor::default(), &tools, "later", json!({})).await;
    assert_eq!(outcome["error"]["kind"], "storage");
    assert_eq!(outcome["error"]["message"], "`later` runs in the background, which needs a store; none is configured");
}

#[tokio::test]
async fn layers_of_your_own_stand_around_the_call() {
    struct Shout;
    impl Layer for Shout {
        async fn call(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> Result<Output, ToolError> {
            // The rest may run with another call and another context.
            let louder = ToolCall { arguments: json!({"a": 2}), ..call.clone() };
            let output = next.run(&louder, &cx.clone().with_extension(Shout)).await?;
            let loud = output.text.to_uppercase();
            Ok(output.with_text(loud))
        }
    }
    let executor = Executor::new(ExecutorOptions::default().layers(vec![Arc::new(Shout)]));
    let outcome = call(&executor, &toolkit([echo("echo", Rules::default())]), "echo", json!({"a": 1})).await;
    assert_eq!(outcome["text"], "{\"A\":2}");
}

fn counting(rule: CacheRule, succeed: bool) -> (Arc<AtomicU32>, helve_tools::Toolkit) {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let rules = Rules::default().cache(rule);
    let tool = fake(spec("count").with_rules(rules), move |_, _| {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if succeed { Ok(Output::data(json!(run))) } else { Err(ToolError::failed("no")) }
        })
    });
    (runs, toolkit([tool]))
}

#[tokio::test]
async fn results_are_kept_and_equal_calls_run_once() {
    let rule = CacheRule { ttl: LONG, per_caller: false };
    let (runs, tools) = counting(rule, true);
    let executor = Executor::default();
    let first = join_all((0..50).map(|_| call(&executor, &tools, "count", json!({"a": 1, "b": 2})))).await;
    assert!(first.iter().all(|outcome| outcome["data"] == 1));
    assert_eq!(runs.load(Ordering::SeqCst), 1, "fifty asked, one ran");
    let again = call(&executor, &tools, "count", json!({"b": 2.0, "a": 1})).await;
    assert_eq!((&again["data"], &again["metadata"]), (&json!(1), &json!({"cached": true})));
    assert_eq!(call(&executor, &tools, "count", json!({"a": 1, "b": 3})).await["data"], 2);
}

#[tokio::test]
async fn failures_are_shared_by_those_who_wait_but_not_kept() {
    let (runs, tools) = counting(CacheRule { ttl: LONG, per_caller: false }, false);
    let executor = Executor::default();
    let failed = join_all((0..20).map(|_| call(&executor, &tools, "count", json!({})))).await;
    assert!(failed.iter().all(|outcome| outcome["error"]["kind"] == "failed"));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    call(&executor, &tools, "count", json!({})).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_leader_who_gives_up_does_not_fail_those_who_wait() {
    let (runs, tools) = counting(CacheRule { ttl: LONG, per_caller: false }, true);
    let executor = Executor::default();
    let cancel = CancellationToken::new();
    let impatient = CallContext::default().with_cancel(cancel.clone());
    let leader = executor.execute(&tools, ToolCall::new("count", json!({})), &impatient);
    let follower = async {
        tokio::task::yield_now().await;
        let follower = call(&executor, &tools, "count", json!({}));
        cancel.cancel();
        follower.await
    };
    let (leader, follower) = tokio::join!(leader, follower);
    assert_eq!(leader.error().map(ToolError::kind), Some(ErrorKind::Cancelled));
    assert_eq!(follower["success"], json!(true));
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn kept_results_expire_and_may_belong_to_one_caller() {
    let executor = Executor::default();
    let (runs, tools) = counting(CacheRule { ttl: Duration::ZERO, per_caller: false }, true);
    call(&executor, &tools, "count", json!({})).await;
    call(&executor, &tools, "count", json!({})).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2);

    let (runs, tools) = counting(CacheRule { ttl: LONG, per_caller: true }, true);
    for conversation in [ConversationId::mint(), ConversationId::mint()] {
        for _ in 0..2 {
            // Which run of a conversation asks makes no difference.
            let cx = CallContext::new(Caller::default().conversation(conversation).run(RunId::mint()));
            executor.execute(&tools, ToolCall::new("count", json!({})), &cx).await;
        }
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2, "each conversation has its own");
}
