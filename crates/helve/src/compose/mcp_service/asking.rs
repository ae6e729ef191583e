//! What a tool asks, put to the client in the words of the protocol.

use helve_core::{Decision, Grant, InputRequest, Question};
use helve_mcp::Downstream;
use serde_json::{Map, Value, json};

use super::AGENT;

/// Whether a client can ask its user something.
pub(super) fn can(capabilities: &Value) -> bool {
    capabilities.get("elicitation").is_some_and(Value::is_object)
}

/// What the client of the newer era is asked, by name.
pub(super) fn requests(question: &Question) -> Map<String, Value> {
    let requests = question.input.iter().flat_map(|needed| &needed.requests);
    requests.map(|request| (request.key.clone(), json!({"method": "elicitation/create", "params": params(question, request)}))).collect()
}

/// Asks a client of the older era, one thing after the other, until it says no.
pub(super) async fn ask(question: &Question, from: &Downstream) -> Grant {
    let mut answers = Map::new();
    for request in question.input.iter().flat_map(|needed| &needed.requests) {
        match from.channel.ask("elicitation/create", params(question, request)).await {
            Ok(said) if accepts(&said) => answers.insert(request.key.clone(), said),
            Ok(_) => break,
            Err(error) => {
                tracing::warn!(%error, tool = &*question.tool, "the client could not be asked");
                break;
            }
        };
    }
    answer(question, Some(&Value::Object(answers)))
}

/// The client's answers as they re-enter the executor. A tool that asks several things gets an answer to each, or none.
pub(super) fn answer(question: &Question, answers: Option<&Value>) -> Grant {
    let requests = question.input.as_ref().map(|needed| needed.requests.as_slice()).unwrap_or_default();
    let said = |request: &InputRequest| {
        let said = answers?.get(&request.key).filter(|said| accepts(said))?;
        Some((request.key.clone(), said.get("content").cloned().unwrap_or_else(|| json!({}))))
    };
    match requests.iter().map(said).collect::<Option<Map<String, Value>>>() {
        None => question.answer(Decision::Deny, AGENT),
        Some(all) => match requests {
            [only] => question.answer_with(&all[&only.key], AGENT),
            _ => question.answer_with(&Value::Object(all), AGENT),
        },
    }
}

fn accepts(said: &Value) -> bool {
    said.get("action").and_then(Value::as_str) == Some("accept")
}

fn params(question: &Question, request: &InputRequest) -> Value {
    if let Some(url) = &request.url {
        return json!({"mode": "url", "message": request.message, "url": url, "elicitationId": question.id});
    }
    let nothing = || json!({"type": "object", "properties": {}});
    json!({"mode": "form", "message": request.message, "requestedSchema": request.schema.clone().unwrap_or_else(nothing)})
}
