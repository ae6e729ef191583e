//! What a call costs beyond the tool: a trivial function with three validated fields, through all layers.

use std::hint::black_box;
use std::io;

use helve::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cpu;
use crate::report::Report;

const CALLS: u32 = 200_000;
const TRIES: usize = 7;

/// Adds two numbers and names the sum.
#[tool(idempotent)]
async fn add(
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
    /// What the sum is called.
    label: String,
) -> String {
    format!("{label}: {}", a + b)
}

/// The same with everything that a tool can ask for.
#[tool(idempotent, retries = 3, timeout = "5s", concurrency = 32)]
async fn add_with_rules(a: i64, b: i64, label: String) -> String {
    add(a, b, label).await
}

/// What the arguments are, for the baseline.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    a: i64,
    b: i64,
    label: String,
}

fn arguments() -> Value {
    json!({"a": 2, "b": 3, "label": "sum"})
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn set_up() -> (Helve, Toolkit) {
    let helve = Helve::new();
    helve.catalogue().register(add::tool()).expect("a tool");
    helve.catalogue().register(add_with_rules::tool()).expect("a tool");
    let toolkit = helve.toolkit();
    (helve, toolkit)
}

/// CPU time of one call through the executor, in microseconds.
fn through_executor(tool: &'static str) -> f64 {
    let (helve, toolkit) = set_up();
    let runtime = runtime();
    let name: std::sync::Arc<str> = tool.into();
    let cx = CallContext::default();
    let spent = cpu::least(TRIES, || {
        runtime.block_on(async {
            for _ in 0..CALLS {
                let call = ToolCall::new(name.clone(), arguments());
                let outcome = helve.executor().execute(&toolkit, call, &cx).await;
                assert!(black_box(outcome).is_success());
            }
        });
    });
    spent.as_secs_f64() * 1e6 / f64::from(CALLS)
}

/// CPU time of the same work by hand: validate, read, call. In microseconds.
fn by_hand() -> f64 {
    let schema = schemars::schema_for!(Arguments).to_value();
    let validator = jsonschema::options().build(&schema).expect("a schema");
    let runtime = runtime();
    let spent = cpu::least(TRIES, || {
        runtime.block_on(async {
            for _ in 0..CALLS {
                let value = black_box(arguments());
                assert!(validator.is_valid(&value));
                let Arguments { a, b, label } = serde_json::from_value(value).expect("arguments");
                black_box(add(a, b, label).await);
            }
        });
    });
    spent.as_secs_f64() * 1e6 / f64::from(CALLS)
}

/// CPU time of the tool alone, with making its arguments. In microseconds.
fn tool_alone() -> f64 {
    let runtime = runtime();
    let (tool, cx) = (add::tool(), CallContext::default());
    let name: std::sync::Arc<str> = "add".into();
    let spent = cpu::least(TRIES, || {
        runtime.block_on(async {
            for _ in 0..CALLS {
                let call = ToolCall::new(name.clone(), arguments());
                black_box(tool.call(&call, &cx).await.expect("an output"));
            }
        });
    });
    spent.as_secs_f64() * 1e6 / f64::from(CALLS)
}

/// Measures one call.
pub fn measure(report: &mut Report) {
    let (alone, hand) = (tool_alone(), by_hand());
    let plain = through_executor("add");
    report.row("one call through all layers, beyond the tool", plain - alone, "µs", ("the tool alone", alone), Some(2.0));
    report.row(
        "one call through all layers, with retries, a timeout and a concurrency limit, beyond the tool",
        through_executor("add_with_rules") - alone,
        "µs",
        ("", 0.0),
        Some(2.0),
    );
    report.row("one call, tool included", plain, "µs", ("validate, read and call by hand", hand), None);
    // A line is written for each call, into nothing: what is measured is redaction and formatting.
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_writer(io::sink).finish();
    let logged = tracing::subscriber::with_default(subscriber, || through_executor("add"));
    report.row("one call, tool included, logged at INFO", logged, "µs", ("not logged", plain), None);
}

/// Makes calls and nothing else.
pub fn only(count: u32) {
    let (helve, toolkit) = set_up();
    let cx = CallContext::default();
    runtime().block_on(async {
        for _ in 0..count {
            let outcome = helve.executor().execute(&toolkit, ToolCall::new("add", arguments()), &cx).await;
            assert!(black_box(outcome).is_success());
        }
    });
}
