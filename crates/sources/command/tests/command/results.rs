//! Results of programs that exit by themselves.

use futures_util::future::join_all;
use helve_core::{CallContext, Redactor, ToolCall};
use helve_testkit::toolkit;
use helve_tools::{Executor, ExecutorOptions};
use serde_json::{Value, json};

use crate::support::{Project, call, error, text};

const CANARY: &str = "canary-7f3a-0123456789-0123456789-0123456789";

#[tokio::test]
async fn text_json_and_bytes() {
    let project = Project::new();
    assert_eq!(text(&project.sh("printf 'one\\ntwo\\n'"), json!({})).await, "one\ntwo");
    assert_eq!(text(&project.sh("printf 'a\\377\\000b'"), json!({})).await, "a\u{fffd}\0b");
    assert_eq!(text(&project.sh(":"), json!({})).await, "");
    let formatted = |format: &str, script: &str| project.tool(json!({"command": ["sh", "-c", script], "format": format}));
    let output = call(&formatted("text", "echo '{\"a\":1}'"), json!({})).await.expect("an output");
    assert_eq!((output.text.as_str(), output.data), ("{\"a\":1}", Value::Null));
    assert_eq!(call(&formatted("json", "echo 42"), json!({})).await.expect("an output").data, json!(42));
    for script in ["echo hello", "printf '\"\\377\"'", ":"] {
        let refused = error(&formatted("json", script), json!({})).await;
        assert!(refused.starts_with("invalid_output: the program's output is not valid JSON"), "{refused}");
    }
    // No guessing: the output of a program with status 0 is its result.
    let output = call(&project.sh("echo '{\"error\": \"x\"}'"), json!({})).await.expect("an output");
    assert_eq!(output.data, json!({"error": "x"}));
}

#[tokio::test]
async fn large_outputs_are_read_whole() {
    let project = Project::new();
    let output = call(&project.sh("cat"), json!({"text": "x".repeat(1_000_000)})).await.expect("an output");
    assert_eq!(output.data["text"].as_str().map(str::len), Some(1_000_000));
}

#[tokio::test]
async fn a_failure_tells_its_status_and_the_end_of_stderr() {
    let project = Project::new();
    let failed = call(&project.sh("echo out; echo 'no such row' >&2; exit 3"), json!({})).await.expect_err("a failure");
    assert_eq!(failed.to_string(), "failed: the program exited with status 3 and wrote to stderr:\nno such row");
    assert_eq!(failed.details()["exit_status"], 3);
    let killed = call(&project.sh("kill -9 $$"), json!({})).await.expect_err("a failure");
    assert_eq!(killed.to_string(), "failed: the program was killed by signal SIGKILL and wrote nothing");
    assert_eq!(killed.details()["signal"], "SIGKILL");
    assert_eq!(text(&project.sh("echo warning >&2; echo fine"), json!({})).await, "fine");
}

#[tokio::test]
async fn a_flood_of_stderr_leaves_its_end() {
    let project = Project::new();
    let flood = "head -c 20000000 /dev/zero | tr '\\0' x >&2; echo 'the end' >&2; exit 1";
    let said = error(&project.sh(flood), json!({})).await;
    assert!(said.ends_with("xxthe end") && said.contains("at the end:\n…x") && said.len() < 2200, "{said}");
}

#[tokio::test]
async fn a_flood_of_stdout_is_stopped() {
    let project = Project::new();
    assert_eq!(
        error(&project.sh("yes"), json!({})).await,
        "failed: the program was stopped: output limit of 1048576 bytes exceeded (max_bytes)"
    );
    let small = |bytes: u64| project.tool(json!({"command": ["printf", "12345"], "max_bytes": bytes}));
    assert_eq!(text(&small(5), json!({})).await, "12345");
    assert_eq!(error(&small(4), json!({})).await, "failed: the program was stopped: output limit of 4 bytes exceeded (max_bytes)");
}

/// Repeated so often that both truncations fall into it.
#[tokio::test]
async fn a_secret_is_cut_out_before_anything_else_is() {
    let project = Project::new();
    project.redactor.add([CANARY.to_owned().into()]);
    for (padding, stream) in [(0, "2"), (7, "2"), (29, "2"), (0, "1"), (13, "1")] {
        let script = format!("cd /; (printf %{padding}s; yes {CANARY}{CANARY} | head -n 3000 | tr -d '\\n') >&{stream}; exit 1");
        let said = error(&project.sh(&script), json!({})).await;
        assert!(said.contains("[REDACTED]") && !said.contains("canary") && !said.contains("0123"), "{padding} {stream}: {said}");
    }
}

#[tokio::test]
async fn a_secret_that_the_file_sets_is_known() {
    let project = Project::new();
    let tool = project.tool(json!({"command": ["sh", "-c", "echo $API_TOKEN >&2; exit 1"], "env": [format!("API_TOKEN={CANARY}")]}));
    assert!(error(&tool, json!({})).await.ends_with("[REDACTED]"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_calls_at_once_do_not_mix() {
    let project = Project::new();
    let tool = project.sh("cat; echo noise >&2");
    let calls = (0..50).map(|number| {
        let tool = &tool;
        async move {
            let output = call(tool, json!({"number": number, "text": "x".repeat(10_000)})).await.expect("an output");
            assert_eq!(output.data["number"], number);
        }
    });
    join_all(calls).await;
}

#[tokio::test]
async fn layers_check_what_goes_in_and_out() {
    let project = Project::new();
    let tool = project.tool(json!({
        "command": ["sh", "-c", "printf '{\"sum\": \"%s\"}' \"$1\"", "sh", "{{ n }}"],
        "parameters": [{"name": "n", "type": "integer"}],
        "output": {"type": "object", "properties": {"sum": {"type": "integer"}}},
    }));
    let executor = Executor::new(ExecutorOptions::default().redactor(Redactor::default()));
    let kit = toolkit([tool]);
    let kind = async |arguments: Value| {
        let outcome = executor.execute(&kit, ToolCall::new("test", arguments), &CallContext::default()).await;
        outcome.error().map(|error| error.kind().name())
    };
    assert_eq!(kind(json!({"n": "x"})).await, Some("invalid_parameters"));
    assert_eq!(kind(json!({"n": "7"})).await, Some("invalid_output"));
}
