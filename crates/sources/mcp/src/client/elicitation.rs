//! Converts a server's elicitations to Helve's input requests, and the input that a person gives to responses of the protocol.

use std::future::ready;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::json::{JsonLimits, measure};
use helve_core::{InputNeeded, InputRequest, InputResponse, ToolError, printable};
use helve_fetch::read_url;
use helve_mcp_wire::{CODES, InputRequired, InputResponses, RpcError};
use serde_json::{Map, Value, json};

use crate::pin::strip_words;

/// Maximum length in characters of the message that is shown to a person.
const MAX_MESSAGE: usize = 4_000;
/// Maximum number of input requests that a server may send at once.
pub(crate) const MAX_REQUESTS: usize = 16;
/// The methods that a server may call on a client.
pub(crate) const ASKS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];
/// Delay before a request is repeated because the server asked for it, multiplied by the number of the attempt.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Maximum size in bytes of the request state that Helve keeps for a server.
const MAX_STATE: usize = 64 << 10;
/// Maximum length in bytes of the key of an input request.
const MAX_KEY: usize = 256;

/// Converts the input requests of a modern server. Returns `None` if the server only wants the request to be repeated.
///
/// # Errors
/// Returns an error if the server requests something that Helve does not support, or exceeds a limit.
pub(super) fn read(required: &InputRequired) -> Result<Option<InputNeeded>, ToolError> {
    let requests = required.requests();
    if requests.len() > MAX_REQUESTS {
        return Err(ToolError::failed(format!("the server sent more than {MAX_REQUESTS} input requests at once")));
    }
    let mut wanted = Vec::new();
    for request in requests {
        if request.key.len() > MAX_KEY {
            return Err(ToolError::failed("the server sent an input request whose key is too long"));
        }
        if request.method != "elicitation/create" {
            let method = printable::escape_line(&printable::shorten(request.method, 80));
            return Err(ToolError::failed(format!("the server requested `{method}`, which Helve does not support")));
        }
        wanted.push(form(request.key, request.params)?);
    }
    if wanted.is_empty() {
        return Ok(None);
    }
    let keys: Vec<&str> = required.requests().map(|request| request.key).collect();
    let mut state = json!({"keys": keys});
    if let Some(own) = &required.state {
        if own.to_string().len() > MAX_STATE {
            return Err(ToolError::failed(format!("the server's request state is larger than {MAX_STATE} bytes")));
        }
        state[STATE] = own.clone();
    }
    Ok(Some(InputNeeded::new(wanted, state)))
}

/// The field of [`InputNeeded::state`] that holds the server's request state.
const STATE: &str = "requestState";

/// Converts the parameters of one elicitation to an input request.
///
/// # Errors
/// Returns an error if the URL is invalid, or if the schema is too large.
pub(super) fn form(key: &str, params: &Value) -> Result<InputRequest, ToolError> {
    let text = |field: &str| params.get(field).and_then(Value::as_str);
    let message = printable::escape(&printable::shorten(text("message").unwrap_or("the server needs input"), MAX_MESSAGE));
    let url = match text("mode") {
        Some("url") => {
            let url = text("url").and_then(|url| read_url(url).ok());
            Some(url.ok_or_else(|| ToolError::failed("the server requested to open an invalid URL"))?.to_string())
        }
        _ => None,
    };
    let mut schema = params.get("requestedSchema").filter(|schema| schema.is_object() && url.is_none()).cloned();
    if let Some(schema) = &mut schema {
        let too_much = |error| ToolError::failed(format!("the server's form cannot be shown: {error}"));
        measure(schema, JsonLimits::SCHEMA).map_err(too_much)?;
        strip_words(schema);
    }
    Ok(InputRequest { key: key.to_owned(), message, schema, url })
}

/// Returns the response to the elicitation with this key.
pub(super) fn response(given: &InputResponse, key: &str) -> Value {
    match given.answers.as_ref().map(|answers| answers.get(key)) {
        None => json!({"action": "decline"}),
        Some(content) => json!({"action": "accept", "content": content.cloned().unwrap_or_else(|| json!({}))}),
    }
}

/// Returns the responses to all elicitations that [`read`] converted, and the server's request state.
pub(super) fn responses(given: &InputResponse) -> InputResponses {
    let keys = given.state.get("keys").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let responses: Map<String, Value> = keys.map(|key| (key.to_owned(), response(given, key))).collect();
    InputResponses { responses: Some(Value::Object(responses)), state: given.state.get(STATE).cloned() }
}

/// Responds to a server's request that this client does not support the method.
pub(super) fn not_offered<'a>() -> BoxFuture<'a, Result<Value, RpcError>> {
    Box::pin(ready(Err(RpcError::new(CODES.method, "this client does not support the method"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut result: Value) -> Result<Option<InputNeeded>, ToolError> {
        result["resultType"] = json!("input_required");
        super::read(&InputRequired::read(result).expect("an input request"))
    }

    fn responses(given: &InputResponse) -> Value {
        let mut params = Map::new();
        super::responses(given).put(&mut params);
        Value::Object(params)
    }

    #[test]
    fn questions_become_forms_and_answers_go_back() {
        let asked = json!({"requestState": "abc", "inputRequests": {"who": {
            "method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object",
                "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 3}}, "required": ["name"]}}}}});
        let needed = read(asked).expect("readable").expect("an input request");
        assert_eq!(needed.summary(), "the tool requests input: Who?");
        let given = needed.give(&json!({"name": "Ada"}));
        assert_eq!(
            responses(&given),
            json!({"inputResponses": {"who": {"action": "accept", "content": {"age": 3, "name": "Ada"}}}, "requestState": "abc"})
        );
        assert_eq!(responses(&needed.decline())["inputResponses"], json!({"who": {"action": "decline"}}));
    }

    #[test]
    fn a_form_is_no_place_to_hide() {
        let form = |schema: Value| form("a", &json!({"message": "Who\u{202e}?", "requestedSchema": schema}));
        let shown = form(json!({"type": "object", "properties": {"n": {"description": "Na\u{e0041}me"}}})).expect("an input request");
        assert_eq!(shown.message, "Who\\u{202e}?");
        assert_eq!(shown.schema, Some(json!({"type": "object", "properties": {"n": {"description": "Name"}}})));
        let huge = json!({"type": "object", "description": "x".repeat(JsonLimits::SCHEMA.bytes)});
        assert!(form(huge).is_err_and(|error| error.message().contains("cannot be shown")));
        let named = json!({"inputRequests": {"x".repeat(1000): {"method": "elicitation/create"}}});
        assert!(read(named).is_err());
    }

    #[test]
    fn what_is_not_offered_is_refused() {
        let sampling = json!({"inputRequests": {"a": {"method": "sampling/createMessage", "params": {}}}});
        assert!(read(sampling).is_err());
        let bad = |url: &str| json!({"inputRequests": {"a": {"method": "elicitation/create", "params": {"mode": "url", "url": url}}}});
        for url in ["javascript:alert(1)", "file:///etc/passwd", "a$(calc)"] {
            assert!(read(bad(url)).is_err(), "{url}");
        }
        assert!(read(bad("https://example.com/x")).expect("readable").is_some());
        assert!(read(json!({"requestState": "x"})).expect("readable").is_none());
    }
}
