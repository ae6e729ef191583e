//! What a tool must know from a person before it can go on, and what it is told.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a tool must know before it can go on. The call ends for now, and is made again with the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputNeeded {
    /// What it asks.
    pub requests: Vec<InputRequest>,
    /// What the tool needs to go on where it stopped; nobody else looks into it.
    #[serde(default)]
    pub state: Value,
    /// How often the call has asked by now.
    #[serde(default)]
    pub round: u32,
}

/// One thing that a tool asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequest {
    /// Names it among the others.
    pub key: String,
    /// What a person reads.
    pub message: String,
    /// JSON Schema of the answer; nothing where only a yes is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// An address that the person is asked to visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What a tool is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputGiven {
    /// Where the tool stopped.
    #[serde(default)]
    pub state: Value,
    /// An answer for each request, by its key; nothing where the person said no, or nobody answered.
    pub answers: Option<Map<String, Value>>,
    /// How often the call has asked by now.
    #[serde(default)]
    pub round: u32,
}

impl InputNeeded {
    /// What is asked, and where the tool stopped.
    #[must_use]
    pub fn new(requests: Vec<InputRequest>, state: Value) -> Self {
        Self { requests, state, round: 0 }
    }

    /// What is asked, in one sentence.
    #[must_use]
    pub fn summary(&self) -> String {
        let messages: Vec<String> = self.requests.iter().map(|request| crate::printable::shorten(&request.message, 500)).collect();
        format!("the tool asks: {}", messages.join("; "))
    }

    /// JSON Schema of what a person writes: the answer itself where one thing is asked, otherwise an object with an answer for each.
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

    /// Takes what a person wrote; what they left out has its default. Nothing where something that must be there is missing.
    #[must_use]
    pub fn give(&self, written: &Value) -> InputGiven {
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
        InputGiven { state: self.state.clone(), answers: self.requests.iter().map(answer).collect(), round: self.round }
    }

    /// Says that there is no answer.
    #[must_use]
    pub fn decline(&self) -> InputGiven {
        InputGiven { state: self.state.clone(), answers: None, round: self.round }
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
        assert_eq!(needed.summary(), "the tool asks: a?; b?");
    }
}
