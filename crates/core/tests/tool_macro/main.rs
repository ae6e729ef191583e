//! `#[tool]` through the public API: the spec of a function, and calls of it.
#![forbid(unsafe_code)]

mod errors;
mod names;

use std::sync::Arc;

use helve_core::{
    CacheRule, CallContext, Caller, DynTool, ErrorKind, Mode, Output, Permission, Rules, ToolCall, ToolError, ToolKind, tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Adds two numbers.
///
///   - Indentation stays.
#[tool(idempotent, timeout = "5s", crate = helve_core)]
async fn add(
    /// The first number.
    a: i64,
    /// The second number,
    /// on two lines.
    #[default(10)]
    b: i64,
    note: Option<String>,
    cx: &CallContext,
) -> i64 {
    assert!(note.is_none_or(|note| note == *cx.caller().agent.clone().unwrap_or_default()));
    a + b
}

#[tokio::test]
async fn a_function_becomes_a_tool() {
    let tool = add::tool();
    let spec = tool.spec();
    assert_eq!(&**spec.name(), "add");
    assert_eq!(&**spec.description(), "Adds two numbers.\n\n  - Indentation stays.");
    assert_eq!((spec.title(), spec.output()), (None, None));
    assert_eq!(spec.origin().kind, ToolKind::Builtin);
    assert_eq!(spec.origin().location.as_deref(), Some("tool_macro::add"));
    assert_eq!(
        *spec.input().value(),
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first number."},
                "b": {"type": "integer", "description": "The second number,\non two lines.", "default": 10},
                "note": {"type": ["string", "null"]},
            },
            "additionalProperties": false,
            "required": ["a"],
        })
    );
    assert!(Arc::ptr_eq(spec, add::tool().spec()), "the spec is made once");
    assert_eq!(run(&tool, json!({"a": 1})).await.expect("a sum"), Output::text("11").with_data(json!(11)));
    assert_eq!(run(&tool, json!({"a": 1, "b": 2, "note": null})).await.expect("a sum").text, "3");
}

#[tokio::test]
async fn the_function_can_still_be_called() {
    assert_eq!(add(1, 2, None, &CallContext::default()).await, 3);
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused() {
    let tool = add::tool();
    for (arguments, told) in [
        (json!({}), "missing field `a`"),
        (json!({"a": "one"}), "invalid type"),
        (json!({"a": 1, "c": 2}), "unknown field `c`"),
        (json!(7), "an object with the arguments of `add`"),
    ] {
        let error = run(&tool, arguments).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidParameters);
        assert!(error.message().contains(told), "{error}");
    }
}

#[tokio::test]
async fn the_context_is_handed_in() {
    /// Says who calls.
    #[tool(crate = helve_core)]
    async fn by_value(cx: CallContext) -> Option<String> {
        cx.caller().agent.as_deref().map(ToOwned::to_owned)
    }

    /// Says who calls.
    #[tool(crate = helve_core)]
    async fn in_the_middle(a: i64, cx: &CallContext, b: i64) -> String {
        format!("{}{a}{b}", cx.caller().agent.as_deref().unwrap_or_default())
    }

    /// Says who calls.
    #[tool(crate = helve_core)]
    fn by_reference(a: i64, _: &CallContext) -> i64 {
        a
    }

    /// Says who calls.
    #[tool(crate = helve_core)]
    fn on_a_thread(cx: &CallContext) -> String {
        cx.caller().agent.as_deref().unwrap_or_default().to_owned()
    }

    assert_eq!(run(&by_value::tool(), json!({})).await.expect("a name").text, "smith");
    assert_eq!(run(&in_the_middle::tool(), json!({"a": 1, "b": 2})).await.expect("a name").text, "smith12");
    assert_eq!(run(&by_reference::tool(), json!({"a": 1})).await.expect("a number").text, "1");
    assert_eq!(run(&on_a_thread::tool(), json!({})).await.expect("a name").text, "smith");
    assert_eq!(properties(&by_value::tool()), Vec::<String>::new());
    assert_eq!(properties(&in_the_middle::tool()), ["a", "b"]);
}

#[tokio::test]
async fn a_plain_function_runs_on_another_thread() {
    /// Names its thread.
    #[tool(crate = helve_core)]
    fn blocking(cx: CallContext) -> String {
        format!("{:?} {}", std::thread::current().id(), cx.caller().agent.as_deref().unwrap_or_default())
    }

    /// Names its thread.
    #[tool(crate = helve_core)]
    async fn inline() -> String {
        format!("{:?}", std::thread::current().id())
    }

    let here = format!("{:?}", std::thread::current().id());
    assert_eq!(run(&inline::tool(), json!({})).await.expect("a thread").text, here);
    let there = run(&blocking::tool(), json!({})).await.expect("a thread").text;
    assert!(there.ends_with(" smith") && !there.starts_with(&here), "{there} is not {here}");
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    #[default]
    Celsius,
    Kelvin,
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    degrees: f64,
    unit: Unit,
}

#[tokio::test]
async fn defaults_are_told_and_used() {
    /// Collects defaults.
    #[tool(crate = helve_core)]
    async fn defaults(
        #[default("Paris")] city: String,
        #[default(-2.5)] offset: f64,
        #[default] unit: Unit,
        #[default(vec![1, 2])] days: Vec<u8>,
        #[default = 3]
        #[schemars(range(min = 1, max = 10))]
        count: u32,
    ) -> Value {
        json!([city, offset, unit, days, count])
    }

    let tool = defaults::tool();
    let input = tool.spec().input().value();
    assert_eq!(input.get("required"), None);
    let of = |name: &str| input["properties"][name]["default"].clone();
    let told = ["city", "offset", "unit", "days", "count"].map(of);
    assert_eq!(json!(told), json!(["Paris", -2.5, "celsius", [1, 2], 3]));
    assert_eq!(input["properties"]["count"]["maximum"], json!(10));
    assert_eq!(run(&tool, json!({})).await.expect("defaults").data, json!(told));
    let given = json!(["Rome", 0.5, "kelvin", [], 1]);
    let arguments = json!({"city": "Rome", "offset": 0.5, "unit": "kelvin", "days": [], "count": 1});
    assert_eq!(run(&tool, arguments).await.expect("arguments").data, given);
}

#[tokio::test]
async fn an_output_schema_is_promised_and_kept() {
    /// Tells the weather.
    #[tool(output, crate = helve_core)]
    async fn weather() -> Result<Weather, ToolError> {
        Ok(Weather { degrees: 20.5, unit: Unit::Celsius })
    }

    /// Tells the unit, which is text.
    #[tool(output, crate = helve_core)]
    fn unit() -> Unit {
        Unit::Kelvin
    }

    for (tool, data) in [(weather::tool(), json!({"degrees": 20.5, "unit": "celsius"})), (unit::tool(), json!("kelvin"))] {
        let schema = tool.spec().output().expect("a promise").clone();
        let output = run(&tool, json!({})).await.expect("a result");
        assert_eq!(output.data, data);
        assert!(schema.is_valid(&output.data) && !schema.is_valid(&json!(null)), "{schema:?}");
    }
    assert_eq!(run(&unit::tool(), json!({})).await.expect("a result").text, "kelvin");
}

#[tokio::test]
async fn a_function_can_refuse_arguments() {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "a check gets references")]
    fn check(from: &i64, to: &i64) -> Result<(), &'static str> {
        if from < to { Ok(()) } else { Err("`from` must be less than `to`") }
    }

    /// Counts.
    #[tool(validate = check, crate = helve_core)]
    async fn count(from: i64, _cx: &CallContext, to: i64) -> i64 {
        to - from
    }

    let refused = |arguments| count::tool().validate(&ToolCall::new("count", arguments));
    assert!(refused(json!({"from": 1, "to": 2})).is_ok());
    let error = refused(json!({"from": 2, "to": 1})).expect_err("refused");
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidParameters, "`from` must be less than `to`"));
    assert_eq!(refused(json!({})).expect_err("incomplete").kind(), ErrorKind::InvalidParameters);
    assert_eq!(run(&count::tool(), json!({"from": 1, "to": 3})).await.expect("a number").data, json!(2));
    assert!(add::tool().validate(&ToolCall::new("add", json!({}))).is_ok(), "without a check nothing is looked at");
}

#[tokio::test]
async fn the_fields_of_one_struct_can_be_the_arguments() {
    #[derive(Deserialize, JsonSchema)]
    struct Order {
        /// What is ordered.
        dish: String,
        #[serde(default)]
        spicy: bool,
    }

    /// Cooks.
    #[tool(crate = helve_core)]
    async fn cook(#[flatten] order: Order, cx: &CallContext) -> String {
        format!("{} {} {}", order.dish, order.spicy, cx.caller().agent.as_deref().unwrap_or_default())
    }

    assert_eq!(properties(&cook::tool()), ["dish", "spicy"]);
    assert_eq!(cook::tool().spec().input().value()["properties"]["dish"]["description"], "What is ordered.");
    assert_eq!(run(&cook::tool(), json!({"dish": "soup"})).await.expect("a text").text, "soup false smith");
}

#[test]
fn attributes_become_rules() {
    /// This comment is for people.
    #[tool(
        name = "all-of-it",
        title = "All of it",
        description = "This text is for models.",
        permission = "confirm",
        timeout = "1m 30s",
        retries = 3,
        cache = "5m",
        background,
        priority = -3,
        delay = "10m",
        idempotent,
        exclusive,
        ends_run,
    concurrency = 4,
        crate = helve_core,
    )]
    async fn every_attribute() {}

    /// Has no rules of its own.
    #[tool(crate = helve_core)]
    async fn plain() {}

    /// Is never called.
    #[tool(permission = deny, timeout = "250ms", crate = helve_core)]
    async fn refused() {}

    let tool = every_attribute::tool();
    let spec = tool.spec();
    assert_eq!(&**spec.name(), "all-of-it");
    assert_eq!(spec.title(), Some("All of it"));
    assert_eq!(&**spec.description(), "This text is for models.");
    let seconds = std::time::Duration::from_secs;
    assert_eq!(
        *spec.rules(),
        Rules::default()
            .permission(Permission::Confirm)
            .mode(Mode::Background)
            .priority(-3)
            .delay(seconds(600))
            .timeout(seconds(90))
            .retries(3)
            .cache(CacheRule { ttl: seconds(300), per_caller: false })
            .idempotent(true)
            .exclusive(true)
            .concurrency(std::num::NonZeroU32::new(4))
            .ends_run(true)
    );
    assert_eq!(*plain::tool().spec().rules(), Rules::default());
    assert_eq!(refused::tool().spec().rules().permission, Permission::Deny);
    assert_eq!(refused::tool().spec().rules().attempt_timeout(), std::time::Duration::from_millis(250));
}

#[test]
fn results_that_may_depend_on_the_caller_are_kept_by_caller() {
    /// Looks at the caller.
    #[tool(cache = "1s", crate = helve_core)]
    async fn with_context(_cx: &CallContext) {}

    /// Asks for it.
    #[tool(cache = "1s", cache_per_caller, crate = helve_core)]
    async fn with_flag() {}

    for tool in [with_context::tool(), with_flag::tool()] {
        assert!(tool.spec().rules().cache.expect("a cache rule").per_caller);
    }
}

#[test]
fn a_condition_on_the_function_holds_for_the_tool() {
    /// Is not there.
    #[tool(crate = helve_core)]
    #[cfg(false)]
    async fn absent() {}

    /// Is there.
    #[tool(crate = helve_core)]
    #[cfg(not(false))]
    async fn absent() {}

    assert_eq!(&**absent::tool().spec().description(), "Is there.");
}

mod shelf {
    //! Tools that are found at link time.

    /// Is second.
    #[helve_core::tool(crate = helve_core)]
    pub(super) async fn second() {}

    /// Is found although it is private and nobody names it.
    #[helve_core::tool(crate = helve_core)]
    async fn first() {}

    pub(super) mod inner {
        /// Is in a module below.
        #[helve_core::tool(name = "fourth", crate = helve_core)]
        pub(in super::super) fn deep() {}
    }
}

mod shelf_of_another {
    /// Is elsewhere.
    #[helve_core::tool(crate = helve_core)]
    pub fn third() {}
}

#[test]
fn linked_tools_are_found_by_module_and_sorted() {
    let names = |module: &str| {
        let tools = helve_core::function::linked(module);
        tools.iter().map(|tool| tool.spec().name().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names("tool_macro::shelf"), ["first", "fourth", "second"]);
    assert_eq!(names("tool_macro::shelf::inner"), ["fourth"]);
    assert_eq!(names("tool_macro::she"), Vec::<String>::new());
    let all = names("");
    assert!(all.is_sorted() && all.contains(&"third".to_owned()) && all.contains(&"add".to_owned()), "{all:?}");
    assert_eq!(&**shelf::inner::deep::tool().spec().name(), "fourth");
    assert_eq!(&**shelf::second::tool().spec().name(), "second");
    assert_eq!(&**shelf_of_another::third::tool().spec().name(), "third");
}

async fn run(tool: &Arc<dyn DynTool>, arguments: Value) -> Result<Output, ToolError> {
    let call = ToolCall::new(tool.spec().name().clone(), arguments);
    let caller = Caller::default().agent("smith");
    tool.call(&call, &CallContext::new(caller)).await
}

fn properties(tool: &Arc<dyn DynTool>) -> Vec<String> {
    let properties = tool.spec().input().value()["properties"].as_object();
    properties.into_iter().flatten().map(|(name, _)| name.clone()).collect()
}
