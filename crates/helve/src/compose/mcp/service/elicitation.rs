//! Converts a tool's input requests to elicitations, and reads the client's responses.

use helve_core::{ApprovalRequest, Grant, InputRequest, Schema, Verdict};
use helve_mcp::Downstream;
use helve_mcp_wire::InputRequired;
use serde_json::{Map, Value, json};

use super::AGENT;

/// Returns whether a client supports elicitation.
pub(super) fn is_supported(capabilities: &Value) -> bool {
    capabilities.get("elicitation").is_some_and(Value::is_object)
}

/// Returns the result that requests input from a modern client.
pub(super) fn required(approval: &ApprovalRequest) -> InputRequired {
    let requests = approval.input.iter().flat_map(|needed| &needed.requests);
    requests.fold(InputRequired::default(), |required, request| required.with_elicitation(&request.key, &params(approval, request)))
}

/// Sends the input requests to a legacy client, one after the other, until the client declines one.
pub(super) async fn ask(approval: &ApprovalRequest, from: &Downstream) -> Grant {
    let mut responses = Map::new();
    for request in approval.input.iter().flat_map(|needed| &needed.requests) {
        match from.channel.ask("elicitation/create", params(approval, request)).await {
            Ok(response) if is_accepted(&response) => responses.insert(request.key.clone(), response),
            Ok(_) => break,
            Err(error) => {
                tracing::warn!(%error, tool = &*approval.tool, "cannot request input from the MCP client");
                break;
            }
        };
    }
    grant(approval, Some(&Value::Object(responses)))
}

/// Returns the client's responses as a grant for the executor. A tool with several input requests gets all responses or none; a response
/// that does not match its schema counts as missing.
pub(super) fn grant(approval: &ApprovalRequest, responses: Option<&Value>) -> Grant {
    let requests = approval.input.as_ref().map(|needed| needed.requests.as_slice()).unwrap_or_default();
    let content = |request: &InputRequest| {
        let response = responses?.get(&request.key).filter(|response| is_accepted(response))?;
        let content = response.get("content").cloned().unwrap_or_else(|| json!({}));
        let schema = request.schema.clone().and_then(|schema| Schema::new(schema).ok());
        let wrong = schema.map(|schema| schema.check(&content)).unwrap_or_default();
        if let Some(first) = wrong.first() {
            tracing::warn!(problem = %first, tool = &*approval.tool, "the MCP client's input does not match the schema");
            return None;
        }
        Some((request.key.clone(), content))
    };
    match requests.iter().map(content).collect::<Option<Map<String, Value>>>() {
        None => approval.resolve(Verdict::Deny, AGENT),
        Some(all) => match requests {
            [only] => approval.resolve_with(&all[&only.key], AGENT),
            _ => approval.resolve_with(&Value::Object(all), AGENT),
        },
    }
}

fn is_accepted(response: &Value) -> bool {
    response.get("action").and_then(Value::as_str) == Some("accept")
}

fn params(approval: &ApprovalRequest, request: &InputRequest) -> Value {
    if let Some(url) = &request.url {
        return json!({"mode": "url", "message": request.message, "url": url, "elicitationId": approval.id});
    }
    let empty = || json!({"type": "object", "properties": {}});
    json!({"mode": "form", "message": request.message, "requestedSchema": request.schema.clone().unwrap_or_else(empty)})
}

#[cfg(test)]
mod tests {
    use helve_core::{Caller, InputNeeded, ToolCall, ToolSpec};

    use super::*;

    fn approval(keys: &[&str]) -> ApprovalRequest {
        let schema = json!({"type": "object", "properties": {"count": {"type": "integer", "maximum": 3}}, "required": ["count"]});
        let request =
            |key: &&str| InputRequest { key: (*key).to_owned(), message: "How many?".into(), schema: Some(schema.clone()), url: None };
        let spec = ToolSpec::new("count", "Counts.", Schema::any_object()).expect("a spec");
        let needed = InputNeeded::new(keys.iter().map(request).collect(), json!({}));
        ApprovalRequest::about_input(ToolCall::new("count", json!({})), &"s".into(), &spec, Caller::default(), needed)
    }

    #[test]
    fn an_answer_fits_what_was_asked_or_is_none() {
        let accept = |content: Value| json!({"action": "accept", "content": content});
        let given = |approval: &ApprovalRequest, responses: Value| grant(approval, Some(&responses)).given.and_then(|given| given.answers);
        let one = approval(&["a"]);
        assert_eq!(given(&one, json!({"a": accept(json!({"count": 2}))})).map(Value::Object), Some(json!({"a": {"count": 2}})));
        for wrong in [json!({"count": 4}), json!({"count": {"a": ["b"]}}), json!({}), json!(7)] {
            assert_eq!(given(&one, json!({"a": accept(wrong)})), None);
        }
        assert_eq!(given(&one, json!({"a": {"action": "decline"}})), None);
        let two = approval(&["a", "b"]);
        let both = json!({"a": accept(json!({"count": 1})), "b": accept(json!({"count": 2}))});
        assert_eq!(given(&two, both).map(Value::Object), Some(json!({"a": {"count": 1}, "b": {"count": 2}})));
        assert_eq!(given(&two, json!({"a": accept(json!({"count": 1}))})), None, "all or nothing");
    }
}
