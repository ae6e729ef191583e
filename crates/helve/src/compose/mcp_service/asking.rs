//! What a tool asks, put to the client in the words of the protocol.

use helve_core::{ApprovalRequest, Grant, InputRequest, Schema, Verdict};
use helve_mcp::Downstream;
use serde_json::{Map, Value, json};

use super::AGENT;

/// Whether a client can ask its user something.
pub(super) fn can(capabilities: &Value) -> bool {
    capabilities.get("elicitation").is_some_and(Value::is_object)
}

/// What the client of the newer era is asked, by name.
pub(super) fn requests(approval: &ApprovalRequest) -> Map<String, Value> {
    let requests = approval.input.iter().flat_map(|needed| &needed.requests);
    requests.map(|request| (request.key.clone(), json!({"method": "elicitation/create", "params": params(approval, request)}))).collect()
}

/// Asks a client of the older era, one thing after the other, until it says no.
pub(super) async fn ask(approval: &ApprovalRequest, from: &Downstream) -> Grant {
    let mut answers = Map::new();
    for request in approval.input.iter().flat_map(|needed| &needed.requests) {
        match from.channel.ask("elicitation/create", params(approval, request)).await {
            Ok(said) if accepts(&said) => answers.insert(request.key.clone(), said),
            Ok(_) => break,
            Err(error) => {
                tracing::warn!(%error, tool = &*approval.tool, "the client could not be asked");
                break;
            }
        };
    }
    answer(approval, Some(&Value::Object(answers)))
}

/// The client's answers as they re-enter the executor. A tool that asks several things gets an answer to each, or none; one that does
/// not fit what was asked is none.
pub(super) fn answer(approval: &ApprovalRequest, answers: Option<&Value>) -> Grant {
    let requests = approval.input.as_ref().map(|needed| needed.requests.as_slice()).unwrap_or_default();
    let said = |request: &InputRequest| {
        let said = answers?.get(&request.key).filter(|said| accepts(said))?;
        let content = said.get("content").cloned().unwrap_or_else(|| json!({}));
        let schema = request.schema.clone().and_then(|schema| Schema::new(schema).ok());
        let wrong = schema.map(|schema| schema.check(&content)).unwrap_or_default();
        if let Some(first) = wrong.first() {
            tracing::warn!(problem = %first, tool = &*approval.tool, "what the client answered does not fit what was asked");
            return None;
        }
        Some((request.key.clone(), content))
    };
    match requests.iter().map(said).collect::<Option<Map<String, Value>>>() {
        None => approval.resolve(Verdict::Deny, AGENT),
        Some(all) => match requests {
            [only] => approval.resolve_with(&all[&only.key], AGENT),
            _ => approval.resolve_with(&Value::Object(all), AGENT),
        },
    }
}

fn accepts(said: &Value) -> bool {
    said.get("action").and_then(Value::as_str) == Some("accept")
}

fn params(approval: &ApprovalRequest, request: &InputRequest) -> Value {
    if let Some(url) = &request.url {
        return json!({"mode": "url", "message": request.message, "url": url, "elicitationId": approval.id});
    }
    let nothing = || json!({"type": "object", "properties": {}});
    json!({"mode": "form", "message": request.message, "requestedSchema": request.schema.clone().unwrap_or_else(nothing)})
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
        let given = |approval: &ApprovalRequest, answers: Value| answer(approval, Some(&answers)).given.and_then(|given| given.answers);
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
