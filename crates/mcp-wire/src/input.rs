//! Input that a server needs before it can finish a request: its result asks, and the client repeats the request with the responses.

use serde_json::{Map, Value, json};

use crate::result::ResultType;

const REQUESTS: &str = "inputRequests";
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// A result of the type `input_required`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputRequired {
    /// Requests to the client, by key. If there are none, the server only wants the request to be repeated.
    pub requests: Map<String, Value>,
    /// What the client must send back unchanged.
    pub state: Option<Value>,
    /// Every other field.
    pub rest: Map<String, Value>,
}

/// One request of a server to its client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerRequest<'a> {
    /// The key that the response must have.
    pub key: &'a str,
    /// The method, such as `elicitation/create`; empty if it is missing.
    pub method: &'a str,
    /// The parameters; null if they are missing.
    pub params: &'a Value,
}

impl InputRequired {
    /// Reads a result that asks for input. Its parts are moved, not copied.
    ///
    /// # Errors
    /// The result itself, if it is of another type.
    pub fn read(result: Value) -> Result<Self, Value> {
        if ResultType::of(&result) != ResultType::InputRequired {
            return Err(result);
        }
        let Value::Object(mut rest) = result else { return Err(result) };
        ResultType::remove(&mut rest);
        let requests = match rest.remove(REQUESTS) {
            Some(Value::Object(requests)) => requests,
            _ => Map::new(),
        };
        Ok(Self { requests, state: rest.remove(STATE), rest })
    }

    /// Adds an elicitation with these parameters.
    #[must_use]
    pub fn with_elicitation(mut self, key: &str, params: &Value) -> Self {
        self.requests.insert(key.to_owned(), json!({"method": "elicitation/create", "params": params}));
        self
    }

    /// The requests, one by one.
    #[must_use]
    pub fn requests(&self) -> impl ExactSizeIterator<Item = ServerRequest<'_>> {
        self.requests.iter().map(|(key, request)| ServerRequest {
            key,
            method: request.get("method").and_then(Value::as_str).unwrap_or_default(),
            params: request.get("params").unwrap_or(&Value::Null),
        })
    }

    /// The result as it is sent.
    #[must_use]
    pub fn into_value(self) -> Value {
        let mut fields = self.rest;
        ResultType::InputRequired.put(&mut fields);
        if !self.requests.is_empty() {
            fields.insert(REQUESTS.to_owned(), Value::Object(self.requests));
        }
        fields.extend(self.state.map(|state| (STATE.to_owned(), state)));
        Value::Object(fields)
    }
}

/// What a client adds to a request that it repeats.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputResponses {
    /// The responses, by the key of the request.
    pub responses: Option<Value>,
    /// The state that the server sent.
    pub state: Option<Value>,
}

impl InputResponses {
    /// Takes them out of parameters.
    #[must_use]
    pub fn take(params: &mut Map<String, Value>) -> Self {
        Self { responses: params.remove(RESPONSES), state: params.remove(STATE) }
    }

    /// The responses in parameters, if they are an object.
    #[must_use]
    pub fn responses(params: &Value) -> Option<&Map<String, Value>> {
        params.get(RESPONSES)?.as_object()
    }

    /// Writes them into parameters.
    pub fn put(self, params: &mut Map<String, Value>) {
        params.extend(self.responses.map(|responses| (RESPONSES.to_owned(), responses)));
        params.extend(self.state.map(|state| (STATE.to_owned(), state)));
    }

    /// The response to one request.
    #[must_use]
    pub fn response(&self, key: &str) -> Option<&Value> {
        self.responses.as_ref()?.get(key)
    }

    /// The state, if it is a text.
    #[must_use]
    pub fn state_text(&self) -> Option<&str> {
        self.state.as_ref()?.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_asks_comes_back_as_it_was() {
        let result = json!({"resultType": "input_required", "requestState": "s", "ttlMs": 3,
            "inputRequests": {"a": {"method": "roots/list"}, "b": {"method": "elicitation/create", "params": {"message": "Who?"}}}});
        let read = InputRequired::read(result.clone()).expect("a request for input");
        let requests: Vec<_> = read.requests().map(|request| (request.key, request.method, request.params.is_null())).collect();
        assert_eq!(requests, [("a", "roots/list", true), ("b", "elicitation/create", false)]);
        assert_eq!(read.into_value(), result);
        for other in [json!({"resultType": "complete"}), json!({"requestState": "s"}), json!("input_required")] {
            assert_eq!(InputRequired::read(other.clone()), Err(other));
        }
    }

    #[test]
    fn responses_leave_the_other_parameters_alone() {
        let Value::Object(mut params) = json!({"name": "x", "requestState": "s", "inputResponses": {"a": 1}}) else { panic!("an object") };
        let given = InputResponses::take(&mut params);
        assert_eq!((given.state_text(), given.response("a")), (Some("s"), Some(&json!(1))));
        assert_eq!(Value::Object(params.clone()), json!({"name": "x"}));
        given.put(&mut params);
        assert_eq!(Value::Object(params), json!({"name": "x", "requestState": "s", "inputResponses": {"a": 1}}));
    }
}
