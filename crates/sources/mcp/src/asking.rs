//! Questions of a server to the person behind a call: as Helve asks them, and as the server wants them answered.

use helve_core::json::{JsonLimits, measure};
use helve_core::{InputNeeded, InputRequest, InputResponse, ToolError, printable};
use helve_fetch::read_url;
use serde_json::{Map, Value, json};

use crate::inspect::strip_words;

/// How much of a question a person reads.
const MAX_MESSAGE: usize = 4_000;
/// How many things a server may ask at once.
pub(crate) const MAX_REQUESTS: usize = 16;
/// What a server may ask of a client.
pub(crate) const ASKS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];
/// The largest state of a request that a server lets Helve keep.
const MAX_STATE: usize = 64 << 10;
/// The longest name of a question.
const MAX_KEY: usize = 256;

/// Reads what a server of the newer era asks before it goes on. Nothing where it only wants to be asked again.
///
/// # Errors
/// Where it asks for something that Helve does not offer.
pub(crate) fn read(result: &Value) -> Result<Option<InputNeeded>, ToolError> {
    let requests = result.get("inputRequests").and_then(Value::as_object);
    let requests: Vec<_> = requests.into_iter().flatten().collect();
    if requests.len() > MAX_REQUESTS {
        return Err(ToolError::failed(format!("the server asks for more than {MAX_REQUESTS} things at once")));
    }
    let mut wanted = Vec::new();
    for (key, request) in &requests {
        if key.len() > MAX_KEY {
            return Err(ToolError::failed("the server gives its question a name that is too long"));
        }
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
        if method != "elicitation/create" {
            let method = printable::escape_line(&printable::shorten(method, 80));
            return Err(ToolError::failed(format!("the server asks for `{method}`, which is not offered here")));
        }
        wanted.push(form(key, request.get("params").unwrap_or(&Value::Null))?);
    }
    if wanted.is_empty() {
        return Ok(None);
    }
    let state = result.get("requestState").map_or(json!({}), |state| json!({"requestState": state}));
    if state.to_string().len() > MAX_STATE {
        return Err(ToolError::failed(format!("the server wants more than {MAX_STATE} bytes to be kept for it")));
    }
    Ok(Some(InputNeeded::new(wanted, state)))
}

/// Reads one question.
///
/// # Errors
/// Where the address in it may not be shown to anyone.
pub(crate) fn form(key: &str, params: &Value) -> Result<InputRequest, ToolError> {
    let text = |field: &str| params.get(field).and_then(Value::as_str);
    let message = printable::escape(&printable::shorten(text("message").unwrap_or("the server wants to know something"), MAX_MESSAGE));
    let url = match text("mode") {
        Some("url") => {
            let url = text("url").and_then(|url| read_url(url).ok());
            Some(url.ok_or_else(|| ToolError::failed("the server asks to visit something that is no address"))?.to_string())
        }
        _ => None,
    };
    let mut schema = params.get("requestedSchema").filter(|schema| schema.is_object() && url.is_none()).cloned();
    if let Some(schema) = &mut schema {
        let too_much = |error| ToolError::failed(format!("the server asks for something that cannot be shown: {error}"));
        measure(schema, JsonLimits::SCHEMA).map_err(too_much)?;
        strip_words(schema);
    }
    Ok(InputRequest { key: key.to_owned(), message, schema, url })
}

/// The answer to one question, in the words of the protocol.
pub(crate) fn answer(given: &InputResponse, key: &str) -> Value {
    match given.answers.as_ref().map(|answers| answers.get(key)) {
        None => json!({"action": "decline"}),
        Some(content) => json!({"action": "accept", "content": content.cloned().unwrap_or_else(|| json!({}))}),
    }
}

/// What a request says when it is made again with the answers.
pub(crate) fn answers(given: &InputResponse, keys: impl IntoIterator<Item = String>) -> Map<String, Value> {
    let responses: Map<String, Value> = keys.into_iter().map(|key| (key.clone(), answer(given, &key))).collect();
    let mut extra = Map::from_iter([("inputResponses".to_owned(), Value::Object(responses))]);
    if let Some(state) = given.state.get("requestState") {
        extra.insert("requestState".to_owned(), state.clone());
    }
    extra
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_become_forms_and_answers_go_back() {
        let asked = json!({"resultType": "input_required", "requestState": "abc", "inputRequests": {"who": {
            "method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object",
                "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 3}}, "required": ["name"]}}}}});
        let needed = read(&asked).expect("readable").expect("a question");
        assert_eq!(needed.summary(), "the tool asks: Who?");
        let given = needed.give(&json!({"name": "Ada"}));
        assert_eq!(
            Value::Object(answers(&given, ["who".to_owned()])),
            json!({"inputResponses": {"who": {"action": "accept", "content": {"age": 3, "name": "Ada"}}}, "requestState": "abc"})
        );
        let declined = answers(&needed.decline(), ["who".to_owned()]);
        assert_eq!(declined["inputResponses"], json!({"who": {"action": "decline"}}));
    }

    #[test]
    fn a_form_is_no_place_to_hide() {
        let form = |schema: Value| form("a", &json!({"message": "Who\u{202e}?", "requestedSchema": schema}));
        let shown = form(json!({"type": "object", "properties": {"n": {"description": "Na\u{e0041}me"}}})).expect("a question");
        assert_eq!(shown.message, "Who\\u{202e}?");
        assert_eq!(shown.schema, Some(json!({"type": "object", "properties": {"n": {"description": "Name"}}})));
        let huge = json!({"type": "object", "description": "x".repeat(JsonLimits::SCHEMA.bytes)});
        assert!(form(huge).is_err_and(|error| error.message().contains("cannot be shown")));
        let named = json!({"inputRequests": {"x".repeat(1000): {"method": "elicitation/create"}}});
        assert!(read(&named).is_err());
    }

    #[test]
    fn what_is_not_offered_is_refused() {
        let sampling = json!({"inputRequests": {"a": {"method": "sampling/createMessage", "params": {}}}});
        assert!(read(&sampling).is_err());
        let bad = |url: &str| json!({"inputRequests": {"a": {"method": "elicitation/create", "params": {"mode": "url", "url": url}}}});
        for url in ["javascript:alert(1)", "file:///etc/passwd", "a$(calc)"] {
            assert!(read(&bad(url)).is_err(), "{url}");
        }
        assert!(read(&bad("https://example.com/x")).expect("readable").is_some());
        assert!(read(&json!({"requestState": "x"})).expect("readable").is_none());
    }
}
