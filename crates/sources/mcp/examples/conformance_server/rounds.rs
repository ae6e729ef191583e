//! Tools that ask the client before they answer, in the way of the newer protocol: the result is a question, and the call is made again.

use helve_core::Digest;
use helve_mcp::server::ClientRequest;
use helve_mcp_wire::{CODES, RpcError};
use serde_json::{Map, Value, json};

use crate::content::text;
use crate::invalid;

/// The tools of this kind, without the prefix that their names have.
pub const TOOLS: [&str; 8] =
    ["elicitation", "sampling", "list_roots", "request_state", "tampered_state", "multiple_inputs", "capabilities", "multi_round"];

/// A question and its name.
type Question = (&'static str, Value);

/// A question to a person, with one field.
pub fn form(message: &str, field: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

/// A question to the client's model.
pub fn sampling(prompt: &str, max_tokens: u32) -> Value {
    let messages = json!([{"role": "user", "content": text(prompt)}]);
    json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": max_tokens}})
}

/// A result that asks.
pub fn ask(questions: impl IntoIterator<Item = Question>, state: Option<String>) -> Value {
    let questions: Map<String, Value> = questions.into_iter().map(|(name, question)| (name.to_owned(), question)).collect();
    let mut result = json!({"resultType": "input_required", "inputRequests": questions});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

/// What the client answered to a question; one that is no object was not answered.
pub fn answer<'a>(params: &'a Value, name: &str) -> Option<&'a Value> {
    params.get("inputResponses")?.get(name).filter(|answer| answer.is_object())
}

/// Calls one of these tools.
pub fn call(tool: &str, request: &ClientRequest, key: &str) -> Result<Value, RpcError> {
    let params = &request.params;
    let who = || ("user_name", form("What is your name?", "name", "string"));
    let roots = || ("client_roots", json!({"method": "roots/list", "params": {}}));
    let (questions, state, done) = match tool {
        "elicitation" => (vec![who()], None, "Hello!"),
        "sampling" => (vec![("capital_question", sampling("What is the capital of France?", 100))], None, "The model said:"),
        "list_roots" => (vec![roots()], None, "The roots are:"),
        "request_state" | "tampered_state" => (vec![("confirm", form("Please confirm", "ok", "boolean"))], Some("confirm"), "state-ok"),
        "multiple_inputs" => (vec![who(), ("greeting", sampling("Generate a greeting", 50)), roots()], Some("inputs"), "All is there:"),
        "capabilities" => {
            let can = |capability: &str| request.from.capabilities.get(capability).is_some();
            let mut questions = vec![who(), ("greeting", sampling("Generate a greeting", 50))];
            questions.retain(|(name, _)| can(if *name == "greeting" { "sampling" } else { "elicitation" }));
            (questions, None, "The client was asked what it can answer:")
        }
        "multi_round" => {
            let first = ("step1", form("Step 1: What is your name?", "name", "string"));
            let second = ("step2", form("Step 2: What is your favorite color?", "color", "string"));
            match read_state(params, key)?.as_deref() {
                Some("second") => (vec![second], Some("second"), "Both steps are done:"),
                Some("first") if answer(params, first.0).is_some() => return Ok(ask([second], Some(sign("second", key)))),
                _ => (vec![first], Some("first"), ""),
            }
        }
        _ => return Err(invalid(format!("there is no tool that asks for `{tool}`"))),
    };
    let given = read_state(params, key)?;
    let is_answered = questions.iter().all(|(name, _)| answer(params, name).is_some());
    if !is_answered || given.as_deref() != state {
        return Ok(ask(questions, state.map(|state| sign(state, key))));
    }
    Ok(json!({"content": [text(format!("{done} {}", params.get("inputResponses").unwrap_or(&Value::Null)))]}))
}

/// A tool that cannot work for a client without a model.
pub fn needs_sampling(request: &ClientRequest) -> Result<Value, RpcError> {
    if request.from.capabilities.get("sampling").is_none() {
        let data = Some(json!({"requiredCapabilities": {"sampling": {}}}));
        return Err(RpcError { code: CODES.capability, message: "the client has no sampling".to_owned(), data });
    }
    match answer(&request.params, "question") {
        None => Ok(ask([("question", sampling("Say something.", 10))], None)),
        Some(_) => Ok(json!({"content": [text("The model answered.")]})),
    }
}

/// A state that only this server can have given.
fn sign(state: &str, key: &str) -> String {
    format!("{state}.{}", Digest::of([key.as_bytes(), state.as_bytes()]))
}

fn read_state(params: &Value, key: &str) -> Result<Option<String>, RpcError> {
    let Some(said) = params.get("requestState") else { return Ok(None) };
    let state = said.as_str().and_then(|said| said.split_once('.')).map(|(state, _)| state);
    let known = state.filter(|state| said.as_str() == Some(sign(state, key).as_str()));
    known.map(|state| Some(state.to_owned())).ok_or_else(|| invalid("the state of the request is not one that this server gave"))
}
