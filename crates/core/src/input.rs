//! Input requests of tools, and the responses of people.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The input that a tool needs. The call stops, and runs again with the response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputNeeded {
    /// The input requests, at least one.
    pub requests: Vec<InputRequest>,
    /// State from which the tool continues. Helve does not interpret it.
    #[serde(default)]
    pub state: Value,
    /// How many times the call has requested input so far.
    #[serde(default)]
    pub round: u32,
}

/// One input request of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequest {
    /// The key of the response in [`InputResponse::answers`].
    pub key: String,
    /// The message for the person.
    pub message: String,
    /// JSON Schema of the response; `None` if a confirmation is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// A URL that the person is asked to visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The response to the input requests of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputResponse {
    /// The state that the tool set in [`InputNeeded`].
    #[serde(default)]
    pub state: Value,
    /// The responses by [`InputRequest::key`]; `None` if the person declined or the request expired.
    pub answers: Option<Map<String, Value>>,
    /// How many times the call has requested input so far.
    #[serde(default)]
    pub round: u32,
}

impl InputNeeded {
    /// Creates input requests, with the state from which the tool continues.
    #[must_use]
    pub fn new(requests: Vec<InputRequest>, state: Value) -> Self {
        Self { requests, state, round: 0 }
    }

    /// Returns the messages of all requests as one sentence.
    #[must_use]
    pub fn summary(&self) -> String {
        let messages: Vec<String> = self.requests.iter().map(|request| crate::printable::shorten(&request.message, 500)).collect();
        format!("the tool requests input: {}", messages.join("; "))
    }

    /// Returns the JSON Schema of the response: that of a single request, otherwise an object with one property for each request.
    #[must_use]
    pub fn schema(&self) -> Value {
        let of = |request: &InputRequest| request.schema.clone().unwrap_or_else(|| json!({"type": "object"}));
        match self.requests.as_slice() {
            [only] => of(only),
            all => {
                let properties: Map<String, Value> = all.iter().map(|request| (request.key.clone(), of(request))).collect();
                json!({"type": "object", "properties": properties})
            }
        }
    }

    /// Turns what a person wrote into a response, with defaults filled in. The response counts as declined if a required property is
    /// missing.
    #[must_use]
    pub fn give(&self, written: &Value) -> InputResponse {
        let answer = |request: &InputRequest| {
            let own = if self.requests.len() == 1 { Some(written) } else { written.get(&request.key) };
            let mut answer = own.and_then(Value::as_object).cloned().unwrap_or_default();
            let schema = request.schema.as_ref();
            let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                if let Some(default) = property.get("default").filter(|_| !answer.contains_key(name)) {
                    answer.insert(name.clone(), default.clone());
                }
            }
            let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
            let complete = required.into_iter().flatten().filter_map(Value::as_str).all(|name| answer.contains_key(name));
            complete.then(|| (request.key.clone(), Value::Object(answer)))
        };
        InputResponse { state: self.state.clone(), answers: self.requests.iter().map(answer).collect(), round: self.round }
    }

    /// Returns a response that declines all requests.
    #[must_use]
    pub fn decline(&self) -> InputResponse {
        InputResponse { state: self.state.clone(), answers: None, round: self.round }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(key: &str, schema: Value) -> InputRequest {
        InputRequest { key: key.into(), message: format!("{key}?"), schema: Some(schema), url: None }
    }

    #[test]
    fn what_is_left_out_has_its_default_and_what_is_missing_is_no_answer() {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 7}},
            "required": ["name"]});
        let needed = InputNeeded::new(vec![request("who", schema.clone())], json!("s"));
        assert_eq!(needed.schema(), schema);
        let given = needed.give(&json!({"name": "Ada"}));
        assert_eq!(json!(given), json!({"state": "s", "answers": {"who": {"age": 7, "name": "Ada"}}, "round": 0}));
        assert_eq!(needed.give(&json!({})).answers, None);
        assert_eq!(needed.decline().answers, None);
    }

    #[test]
    fn several_things_are_answered_by_their_keys() {
        let schema = json!({"type": "object", "properties": {"x": {"type": "string"}}});
        let needed = InputNeeded::new(vec![request("a", schema.clone()), request("b", schema)], Value::Null);
        let given = needed.give(&json!({"a": {"x": "1"}}));
        assert_eq!(given.answers.map(Value::Object), Some(json!({"a": {"x": "1"}, "b": {}})));
        assert_eq!(needed.summary(), "the tool requests input: a?; b?");
    }
}
