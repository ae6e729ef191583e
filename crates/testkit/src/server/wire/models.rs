//! The model list, in the format of the provider that the client's headers indicate.

use serde_json::{Value, json};

use crate::server::request::Request;

/// The response to `GET …/models`.
pub(in crate::server) fn list(request: &Request, names: &[String]) -> Value {
    if request.headers.contains_key("x-goog-api-key") || request.path.contains("?key=") || request.path.contains("&key=") {
        let model = |name: &String| {
            json!({
                "name": format!("models/{name}"), "version": "001", "displayName": name,
                "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            })
        };
        return json!({"models": names.iter().map(model).collect::<Value>()});
    }
    if request.headers.contains_key("anthropic-version") {
        let model = |name: &String| json!({"type": "model", "id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z"});
        let models: Value = names.iter().map(model).collect();
        return json!({"data": models, "has_more": false, "first_id": names.first(), "last_id": names.last()});
    }
    let model = |name: &String| json!({"id": name, "object": "model", "created": 1_735_689_600, "owned_by": "helve-testkit"});
    json!({"object": "list", "data": names.iter().map(model).collect::<Value>()})
}
