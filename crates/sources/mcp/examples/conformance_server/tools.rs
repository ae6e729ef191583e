//! Tools: each kind of content, logs, progress, and questions to the client while a call runs.

use std::sync::atomic::Ordering;
use std::time::Duration;

use helve_mcp::Change;
use helve_mcp::server::ClientRequest;
use helve_mcp_wire::RpcError;
use serde_json::{Value, json};

use crate::content::{audio, image, resource, text};
use crate::{Fixture, invalid, rounds};

/// Between two signs of life.
const PAUSE: Duration = Duration::from_millis(50);
/// What the tools that ask in rounds have before their names.
const ROUNDS: &str = "test_input_required_result_";
/// The tools without arguments.
const PLAIN: [&str; 16] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_streaming_elicitation",
    "test_missing_capability",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_trigger_resource_change",
];
/// The tool that comes and goes with each change of the list.
const COMING_AND_GOING: &str = "test_listed_every_other_time";

impl Fixture {
    pub fn tools(&self) -> Value {
        let tool = |name: &str, schema: Value| json!({"name": name, "description": "For the conformance suite.", "inputSchema": schema});
        let with = |name: &str, field: Value| json!({"type": "object", "properties": {name: field}, "required": [name]});
        let none = || json!({"type": "object", "properties": {}});
        let mut tools: Vec<Value> = PLAIN.iter().map(|name| tool(name, none())).collect();
        tools.extend(rounds::TOOLS.iter().map(|name| tool(&format!("{ROUNDS}{name}"), none())));
        tools.push(tool("test_sampling", with("prompt", json!({"type": "string"}))));
        tools.push(tool("test_elicitation", with("message", json!({"type": "string"}))));
        tools.push(tool("test_header", with("region", json!({"type": "string", "x-mcp-header": "Region"}))));
        tools.push(tool("json_schema_2020_12_tool", schema_2020_12()));
        if self.listed.load(Ordering::Relaxed) {
            tools.push(tool(COMING_AND_GOING, none()));
        }
        json!({"tools": tools})
    }

    pub async fn call(&self, request: &ClientRequest) -> Result<Value, RpcError> {
        let name = request.params["name"].as_str().unwrap_or_default();
        if let Some(tool) = name.strip_prefix(ROUNDS) {
            return rounds::call(tool, request, &self.key);
        }
        let argument = |name: &str| request.params["arguments"][name].as_str().unwrap_or_default().to_owned();
        let content = match name {
            "test_simple_text" => vec![text("This is a simple text response for testing.")],
            "test_image_content" => vec![image()],
            "test_audio_content" => vec![audio()],
            "test_embedded_resource" => {
                vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
            }
            "test_multiple_content_types" => {
                let data = json!({"test": "data", "value": 123}).to_string();
                let embedded = resource("test://mixed-content-resource", "application/json", &data);
                vec![text("Multiple content types test:"), image(), embedded]
            }
            "test_error_handling" => {
                return Ok(json!({"content": [text("This tool intentionally returns an error for testing")], "isError": true}));
            }
            "test_tool_with_logging" | "test_logging_tool" => log(request).await,
            "test_tool_with_progress" => progress(request).await,
            "test_sampling" => {
                let question = rounds::sampling(&argument("prompt"), 100);
                let answer = request.from.channel.ask("sampling/createMessage", question["params"].clone()).await?;
                vec![text(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))]
            }
            "test_elicitation" => {
                let field = |description: &str| json!({"type": "string", "description": description});
                let fields = json!({"username": field("User's response"), "email": field("User's email address")});
                ask(request, "User response", &argument("message"), fields, &["username", "email"]).await?
            }
            "test_elicitation_sep1034_defaults" => {
                ask(request, "Elicitation completed", "Are these values right?", defaults(), &[]).await?
            }
            "test_elicitation_sep1330_enums" => ask(request, "Elicitation completed", "Which ones?", choices(), &[]).await?,
            "test_streaming_elicitation" => return rounds::call("elicitation", request, &self.key),
            "test_missing_capability" => return rounds::needs_sampling(request),
            "test_trigger_tool_change" => {
                self.listed.fetch_xor(true, Ordering::Relaxed);
                self.change(Change::Tools)
            }
            "test_trigger_prompt_change" => self.change(Change::Prompts),
            "test_trigger_resource_change" => self.change(Change::Resources),
            "test_header" => vec![text(argument("region"))],
            "json_schema_2020_12_tool" | COMING_AND_GOING => vec![text("It was called.")],
            _ => return Err(invalid(format!("there is no tool `{name}`"))),
        };
        Ok(json!({"content": content}))
    }

    fn change(&self, change: Change) -> Vec<Value> {
        // Where no client listens, there is nobody to tell.
        let _ = self.changes.send(change);
        vec![text("The list has changed.")]
    }
}

/// Three lines of a log.
async fn log(request: &ClientRequest) -> Vec<Value> {
    for (number, line) in ["Tool execution started", "Tool processing data", "Tool execution completed"].into_iter().enumerate() {
        if number > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        request.from.channel.notify("notifications/message", json!({"level": "info", "data": line}));
    }
    vec![text("Three lines were logged.")]
}

/// Progress in three steps.
async fn progress(request: &ClientRequest) -> Vec<Value> {
    for done in [0, 50, 100] {
        if done > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        if let Some(token) = &request.from.progress_token {
            let params = json!({"progressToken": token, "progress": done, "total": 100});
            request.from.channel.notify("notifications/progress", params);
        }
    }
    vec![text("All steps are done.")]
}

/// Asks the person behind the client while the call waits, and says what came of it.
async fn ask(request: &ClientRequest, done: &str, message: &str, fields: Value, required: &[&str]) -> Result<Vec<Value>, RpcError> {
    let schema = json!({"type": "object", "properties": fields, "required": required});
    let answer = request.from.channel.ask("elicitation/create", json!({"message": message, "requestedSchema": schema})).await?;
    Ok(vec![text(format!("{done}: action={}, content={}", answer["action"].as_str().unwrap_or_default(), answer["content"]))])
}

/// Fields with a value that holds unless the person says otherwise.
fn defaults() -> Value {
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    })
}

/// Every way to let a person choose.
fn choices() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    })
}

/// A schema with what JSON Schema 2020-12 has and older drafts have not.
fn schema_2020_12() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": text(), "city": text()}}},
        "properties": {
            "name": text(),
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": text(),
            "email": text(),
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
