//! Prompts, and the completion of their arguments.

use helve_mcp_wire::RpcError;
use serde_json::{Value, json};

use crate::content::{image, resource, text};
use crate::{invalid, rounds};

/// Values for every argument.
const WORDS: [&str; 3] = ["paris", "park", "party"];

pub fn list() -> Value {
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<_> = arguments.iter().map(|name| json!({"name": name, "required": true})).collect();
        json!({"name": name, "description": "For the conformance suite.", "arguments": arguments})
    };
    json!({"prompts": [
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]})
}

pub fn get(params: &Value) -> Result<Value, RpcError> {
    let argument = |name: &str| {
        let value = params["arguments"].get(name).and_then(Value::as_str);
        value.ok_or_else(|| invalid(format!("the argument `{name}` is missing")))
    };
    let messages = match params["name"].as_str().unwrap_or_default() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![text(format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1")?, argument("arg2")?))]
        }
        "test_prompt_with_embedded_resource" => vec![
            resource(argument("resourceUri")?, "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![image(), text("Please analyze the image above.")],
        "test_input_required_result_prompt" => {
            let question = ("user_context", rounds::form("What context should the prompt use?", "context", "string"));
            match rounds::answer(params, question.0) {
                None => return Ok(rounds::ask([question], None)),
                Some(answer) => vec![text(format!("Use this context: {}", answer["content"]))],
            }
        }
        name => return Err(invalid(format!("there is no prompt `{name}`"))),
    };
    let messages: Vec<_> = messages.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    Ok(json!({"messages": messages}))
}

pub fn complete(params: &Value) -> Value {
    let begun = params["argument"]["value"].as_str().unwrap_or_default();
    let values: Vec<_> = WORDS.into_iter().filter(|word| word.starts_with(begun)).collect();
    json!({"completion": {"values": values, "total": values.len(), "hasMore": false}})
}
