//! Names in a function: of its parameters, and beside what is generated.

use helve_core::tool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{properties, run};

#[tokio::test]
async fn names_of_parameters_are_plain() {
    /// Has a name that Rust keeps for itself.
    #[tool(crate = helve_core)]
    #[allow(non_snake_case)]
    async fn r#move(r#type: String, _hidden: i64, mut Upper: i64) -> String {
        Upper += 1;
        r#type + &Upper.to_string()
    }

    let tool = r#move::tool();
    assert_eq!(&**tool.spec().name(), "move");
    assert_eq!(properties(&tool), ["type", "hidden", "Upper"]);
    assert_eq!(run(&tool, json!({"type": "x", "hidden": 0, "Upper": 1})).await.expect("a text").text, "x2");
}

#[tokio::test]
async fn no_name_is_in_the_way_of_generated_code() {
    #[derive(Deserialize, JsonSchema)]
    struct Arguments(i64);

    /// Is called like a local of the generated code.
    #[tool(crate = helve_core)]
    fn call(call: i64, arguments: Arguments, context: i64, value: i64) -> Result<i64, String> {
        call.checked_add(arguments.0 + context + value).ok_or_else(|| "too large".to_owned())
    }

    /// Is called like a helper of the generated code.
    #[tool(crate = helve_core)]
    async fn arguments(spec: i64) -> i64 {
        spec
    }

    let four = json!({"call": 1, "arguments": 2, "context": 3, "value": 4});
    assert_eq!(run(&call::tool(), four).await.expect("a sum").data, json!(10));
    assert_eq!(run(&arguments::tool(), json!({"spec": 5})).await.expect("a number").data, json!(5));
}
