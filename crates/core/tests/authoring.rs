//! Tools as types and as closures, and everything that can be registered.
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helve_core::{
    BoxFuture, CallContext, DynTool, ErrorKind, IntoTool, IntoTools, Mode, Output, Permission, Result, Rules, Schema, SpecError, Tool,
    ToolCall, ToolError, ToolResult, ToolSpec, TypedTool, tool_fn,
};
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    /// How many.
    count: u64,
}

#[derive(Default)]
struct Stock(AtomicU64);

impl TypedTool for Stock {
    const NAME: &'static str = "take";
    const DESCRIPTION: &'static str = "Takes from the stock.";
    type Args = Amount;
    type Output = Value;

    async fn call(&self, args: Amount, cx: &CallContext) -> Result<Value> {
        if cx.is_cancelled() {
            Err(ToolError::cancelled())?;
        }
        let left = self.0.load(Ordering::Relaxed).checked_sub(args.count).ok_or("sold out")?;
        self.0.store(left, Ordering::Relaxed);
        Ok(json!({"left": left}))
    }

    fn validate(&self, args: &Amount) -> Result<(), ToolError> {
        if args.count == 0 { Err(ToolError::failed("nothing to take")) } else { Ok(()) }
    }

    fn configure(&self, spec: ToolSpec) -> ToolSpec {
        spec.with_output(Schema::any_object()).with_rules(Rules::default().permission(Permission::Confirm))
    }
}

async fn run(tool: &Arc<dyn DynTool>, arguments: Value) -> Result<Output, ToolError> {
    let call = ToolCall::new(tool.spec().name().clone(), arguments);
    tool.validate(&call)?;
    tool.call(&call, &CallContext::default()).await
}

#[tokio::test]
async fn a_type_is_a_tool() {
    let tool = Stock(5.into()).into_tool().expect("a tool");
    let spec = tool.spec();
    assert_eq!((&**spec.name(), &**spec.description()), ("take", "Takes from the stock."));
    assert_eq!(spec.input().value()["properties"]["count"]["description"], "How many.");
    assert_eq!(spec.rules().permission, Permission::Confirm);
    assert!(spec.output().is_some());
    assert_eq!(run(&tool, json!({"count": 3})).await.expect("taken").data, json!({"left": 2}));
    for (count, kind, message) in [
        (json!(3), ErrorKind::Failed, "sold out"),
        (json!(0), ErrorKind::InvalidParameters, "nothing to take"),
        (json!("x"), ErrorKind::InvalidParameters, "invalid type: string \"x\", expected u64"),
    ] {
        let error = run(&tool, json!({"count": count})).await.expect_err("an error");
        assert_eq!((error.kind(), error.message()), (kind, message));
    }
}

#[tokio::test]
async fn a_closure_is_a_tool() {
    let double = tool_fn("double", "Doubles.", |args: Amount, cx| async move {
        cx.progress(None, "doubling");
        let doubled = args.count.checked_mul(2).ok_or("too many")?;
        Ok(doubled)
    });
    let double = double
        .title("Twice")
        .permission(Permission::Deny)
        .timeout(Duration::from_secs(1))
        .idempotent()
        .background()
        .output()
        .validate(|args| if args.count == 7 { Err("not seven".into()) } else { Ok(()) })
        .into_tool()
        .expect("a tool");
    let spec = double.spec();
    assert_eq!((&**spec.name(), &**spec.description(), spec.title()), ("double", "Doubles.", Some("Twice")));
    assert_eq!(spec.output().expect("a promise").value()["type"], "integer");
    let (permission, timeout) = (Permission::Deny, Some(Duration::from_secs(1)));
    assert_eq!(*spec.rules(), Rules::default().permission(permission).timeout(timeout).idempotent(true).mode(Mode::Background));
    assert_eq!(run(&double, json!({"count": 4})).await.expect("a number").data, json!(8));
    assert_eq!(run(&double, json!({"count": u64::MAX})).await.expect_err("too many").message(), "too many");
    let error = run(&double, json!({"count": 7})).await.expect_err("refused");
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidParameters, "not seven"));
}

#[tokio::test]
async fn async_closures_and_functions_are_tools_too() {
    async fn half(args: Amount, _: CallContext) -> Result<u64> {
        if args.count.is_multiple_of(2) { Ok(args.count / 2) } else { Err("odd".into()) }
    }
    let triple = tool_fn("triple", "Triples.", async |args: Amount, _| Ok(args.count * 3)).into_tool().expect("a tool");
    let half = tool_fn("half", "Halves.", half).into_tool().expect("a tool");
    assert_eq!(run(&triple, json!({"count": 4})).await.expect("a number").data, json!(12));
    assert_eq!(run(&half, json!({"count": 4})).await.expect("a number").data, json!(2));
    assert_eq!(run(&half, json!({"count": 5})).await.expect_err("odd").message(), "odd");
}

#[tokio::test]
async fn a_closure_takes_any_schema_or_none() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let greet = |args: Value, _| async move { Ok(format!("Hello, {}!", args["name"].as_str().unwrap_or("you"))) };
    let known = tool_fn("greet", "Greets.", greet).schema(schema.clone()).into_tool().expect("a tool");
    assert_eq!(*known.spec().input().value(), schema);
    assert_eq!(run(&known, json!({"name": "Ada"})).await.expect("a text").text, "Hello, Ada!");
    let any = tool_fn("greet", "Greets.", greet).into_tool().expect("a tool");
    assert!(any.spec().input().describes_object());
    let wrong = tool_fn("greet", "Greets.", greet).schema(json!({"type": "strin"})).into_tool();
    assert!(matches!(wrong, Err(SpecError::Schema { part: "input", .. })));
    assert!(matches!(tool_fn("no name", "", greet).into_tool(), Err(SpecError::Name { .. })));
}

struct Untyped;

impl Tool for Untyped {
    fn name(&self) -> &str {
        "untyped"
    }

    fn description(&self) -> &str {
        "Has a schema of its own."
    }

    fn parameters_schema(&self) -> Value {
        json!({"type": "object"})
    }

    async fn execute(&self, _: &Value) -> ToolResult {
        ToolResult::success("done")
    }
}

struct Erased(Arc<ToolSpec>);

impl DynTool for Erased {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, _: &'a ToolCall, _: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async { Ok(Output::text("done")) })
    }
}

fn erased() -> Erased {
    Erased(ToolSpec::new("erased", "Is what it is.", Schema::any_object()).expect("a spec").share())
}

#[test]
fn everything_that_is_a_tool_can_be_registered() {
    fn one<Kind>(tool: impl IntoTool<Kind>) -> String {
        tool.into_tool().expect("a tool").spec().name().to_string()
    }
    fn many<Kind>(tools: impl IntoTools<Kind>) -> Vec<String> {
        tools.into_tools().expect("tools").iter().map(|tool| tool.spec().name().to_string()).collect()
    }
    let shared: Arc<dyn DynTool> = Arc::new(erased());
    assert_eq!(one(Untyped), "untyped");
    assert_eq!(one(Box::new(Untyped)), "untyped");
    assert_eq!(one(Stock::default()), "take");
    assert_eq!(one(erased()), "erased");
    assert_eq!(one(Arc::new(erased())), "erased");
    assert_eq!(one(shared.clone()), "erased");
    assert_eq!(many([shared.clone(), shared.clone()]), ["erased", "erased"]);
    assert_eq!(many(vec![Stock::default()]), ["take"]);
    assert_eq!(many(Some(Untyped)), ["untyped"]);
    assert!(Arc::ptr_eq(&shared, &shared.clone().into_tool().expect("a tool")), "a shared tool is not wrapped again");
}
