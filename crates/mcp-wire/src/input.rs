//! Input that a server needs to finish a request: the server returns input requests as the result, and the client repeats the request
//! with the responses.

use serde_json::{Map, Value, json};

use crate::result::ResultType;

const REQUESTS: &str = "inputRequests";
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// A result of the type `input_required`, with which a server asks for input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputRequired {
    /// The input requests, by key. If there are none, the client only has to repeat the request.
    pub requests: Map<String, Value>,
    /// The server's state, which the client must send back unchanged.
    pub state: Option<Value>,
    /// All other fields of the result.
    pub rest: Map<String, Value>,
}

/// One input request of a server to its client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerRequest<'a> {
    /// The key of the request, which the response must have too.
    pub key: &'a str,
    /// The method, such as `elicitation/create`; empty if the request has none.
    pub method: &'a str,
    /// The parameters; null if the request has none.
    pub params: &'a Value,
}

impl InputRequired {
    /// Parses a result of the type `input_required`, without copying its parts.
    ///
    /// # Errors
    /// Returns the unchanged result if it is of another type.
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

    /// Adds an `elicitation/create` request with these parameters.
    #[must_use]
    pub fn with_elicitation(mut self, key: &str, params: &Value) -> Self {
        self.requests.insert(key.to_owned(), json!({"method": "elicitation/create", "params": params}));
        self
    }

    /// Returns an iterator over the input requests.
    #[must_use]
    pub fn requests(&self) -> impl ExactSizeIterator<Item = ServerRequest<'_>> {
        self.requests.iter().map(|(key, request)| ServerRequest {
            key,
            method: request.get("method").and_then(Value::as_str).unwrap_or_default(),
            params: request.get("params").unwrap_or(&Value::Null),
        })
    }

    /// Serialises the result as JSON.
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

/// The fields that a client adds to a repeated request: the responses, and the server's state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputResponses {
    /// The responses, as an object with the keys of the input requests.
    pub responses: Option<Value>,
    /// The state that the server sent with its input requests.
    pub state: Option<Value>,
}

impl InputResponses {
    /// Removes the responses and the state from the parameters of a request, and returns them.
    #[must_use]
    pub fn take(params: &mut Map<String, Value>) -> Self {
        Self { responses: params.remove(RESPONSES), state: params.remove(STATE) }
    }

    /// Returns the responses in the parameters of a request, or `None` if they are missing or not an object.
    #[must_use]
    pub fn responses(params: &Value) -> Option<&Map<String, Value>> {
        params.get(RESPONSES)?.as_object()
    }

    /// Adds the responses and the state to the parameters of a request.
    pub fn put(self, params: &mut Map<String, Value>) {
        params.extend(self.responses.map(|responses| (RESPONSES.to_owned(), responses)));
        params.extend(self.state.map(|state| (STATE.to_owned(), state)));
    }

    /// Returns the response to the input request with this key.
    #[must_use]
    pub fn response(&self, key: &str) -> Option<&Value> {
        self.responses.as_ref()?.get(key)
    }

    /// Returns the state if it is a string.
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
