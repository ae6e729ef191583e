//! Parses and serialises JSON-RPC messages: requests, notifications and responses.

use std::fmt;

use helve_core::json::{self, JsonError, JsonLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of JSON values in a message. A value takes far more bytes in memory than in a message, so a size limit is not enough.
const MAX_VALUES: usize = 100_000;
/// Maximum nesting depth of a message.
const MAX_DEPTH: usize = 127;

/// The id of a request, which its response repeats.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// An integer id.
    Number(i64),
    /// A string id.
    Text(Box<str>),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// The error object of a JSON-RPC response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// The error code, such as one of [`CODES`](crate::CODES).
    pub code: i64,
    /// The description of the error, for people.
    #[serde(default)]
    pub message: String,
    /// Details of the error, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without data.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// A JSON-RPC message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A message that expects a response.
    Request {
        /// The id that the response repeats.
        id: RequestId,
        /// The method that the request calls.
        method: String,
        /// The parameters of the method.
        params: Option<Value>,
    },
    /// A message that expects no response.
    Notification {
        /// The method that names the event.
        method: String,
        /// The parameters of the notification.
        params: Option<Value>,
    },
    /// The response to a request.
    Response {
        /// The id of the request; `None` if the sender could not read the id.
        id: Option<RequestId>,
        /// The result of the request, or its error.
        result: Result<Value, RpcError>,
    },
}

/// Why a text is not a valid message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The text is not valid JSON.
    #[error("invalid JSON: {0}")]
    Json(String),
    /// The message has too many JSON values.
    #[error("the message has more than {MAX_VALUES} values")]
    Values,
    /// The message is JSON that parsers interpret differently, or that cannot be parsed without loss.
    #[error("ambiguous JSON-RPC message: {reason}")]
    Ambiguous {
        /// The id of the message; `None` if it is missing or ambiguous.
        id: Option<RequestId>,
        /// Whether the id is known and only the payload is ambiguous, not the envelope.
        inside: bool,
        /// What is ambiguous, for the sender.
        reason: String,
    },
    /// The text is JSON, but not a JSON-RPC message.
    #[error("not a JSON-RPC message: {0}")]
    Shape(&'static str),
}

impl Message {
    /// Parses one message. The caller must limit the length of `text`.
    ///
    /// # Errors
    /// Returns an error if `text` is not a valid message.
    pub fn read(text: &[u8]) -> Result<Self, MessageError> {
        Self::of(parse(text)?)
    }

    /// Parses one message, or a batch of messages, which version 2025-03-26 of the protocol allows.
    ///
    /// # Errors
    /// Returns an error if `text` is not valid JSON, or if one of the messages is invalid.
    pub fn read_several(text: &[u8]) -> Result<Vec<Self>, MessageError> {
        match parse(text)? {
            Value::Array(several) => several.into_iter().map(Self::of).collect(),
            one => Ok(vec![Self::of(one)?]),
        }
    }

    fn of(value: Value) -> Result<Self, MessageError> {
        let Value::Object(mut fields) = value else { return Err(MessageError::Shape("not an object")) };
        let id = read_id(fields.remove("id"))?;
        match (fields.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Ok(Self::Request { id, method, params: fields.remove("params") }),
            (Some(Value::String(method)), None) => Ok(Self::Notification { method, params: fields.remove("params") }),
            (Some(_), _) => Err(MessageError::Shape("the method is not a string")),
            (None, id) => Ok(Self::Response { id, result: read_result(&mut fields)? }),
        }
    }

    /// Serialises the message as one line, without a line break at the end.
    #[must_use]
    pub fn write(&self) -> String {
        let empty = WireMessage { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None };
        let message = match self {
            Self::Request { id, method, params } => WireMessage { id: Some(id), method: Some(method), params: params.as_ref(), ..empty },
            Self::Notification { method, params } => WireMessage { method: Some(method), params: params.as_ref(), ..empty },
            Self::Response { id, result: Ok(result) } => WireMessage { id: id.as_ref(), result: Some(result), ..empty },
            Self::Response { id, result: Err(error) } => WireMessage { id: id.as_ref(), error: Some(error), ..empty },
        };
        // Serialising cannot fail: all keys are strings.
        serde_json::to_string(&message).unwrap_or_default()
    }
}

/// The fields of a message, in the order in which they are serialised. An unknown id is omitted, because no version allows `null`.
#[derive(Serialize)]
struct WireMessage<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

fn parse(text: &[u8]) -> Result<Value, MessageError> {
    let limits = JsonLimits { bytes: usize::MAX, depth: MAX_DEPTH, nodes: MAX_VALUES };
    json::parse(text, limits).map_err(|error| not_json(&error, text))
}

fn not_json(error: &JsonError, text: &[u8]) -> MessageError {
    let inside = match error {
        JsonError::TooMany { .. } => return MessageError::Values,
        JsonError::DuplicateKey { depth, .. } => *depth > 0,
        JsonError::WideInteger => true,
        JsonError::Syntax { message } => return MessageError::Json(message.clone()),
        _ => return MessageError::Json(error.to_string()),
    };
    // Parses only the id. An id that occurs twice is an error here, so it counts as unknown.
    let id = serde_json::from_slice::<OnlyId>(text).ok().and_then(|message| message.id);
    MessageError::Ambiguous { inside: inside && id.is_some(), id, reason: error.to_string() }
}

#[derive(Deserialize)]
struct OnlyId {
    id: Option<RequestId>,
}

fn read_id(id: Option<Value>) -> Result<Option<RequestId>, MessageError> {
    match id {
        None | Some(Value::Null) => Ok(None),
        Some(id) => serde_json::from_value(id).map(Some).map_err(|_| MessageError::Shape("the id is neither an integer nor a string")),
    }
}

fn read_result(fields: &mut Map<String, Value>) -> Result<Result<Value, RpcError>, MessageError> {
    match (fields.remove("result"), fields.remove("error")) {
        (Some(result), None) => Ok(Ok(result)),
        (_, Some(error)) => serde_json::from_value(error).map(Err).map_err(|_| MessageError::Shape("the error has no code")),
        (None, None) => Err(MessageError::Shape("no method, no result and no error")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Message, MessageError> {
        Message::read(text.as_bytes())
    }

    #[test]
    fn messages_come_back_as_they_were_sent() {
        let error = RpcError { code: -32601, message: "no such method".to_owned(), data: Some(json!({"known": ["ping"]})) };
        for message in [
            Message::Request { id: RequestId::Number(7), method: "ping".to_owned(), params: None },
            Message::Request {
                id: RequestId::Text("a".into()),
                method: "tools/call".to_owned(),
                params: Some(json!({"name": "x\n\u{2028}"})),
            },
            Message::Notification { method: "notifications/initialized".to_owned(), params: None },
            Message::Response { id: Some(RequestId::Number(-1)), result: Ok(json!({})) },
            Message::Response { id: None, result: Err(error) },
        ] {
            let text = message.write();
            assert!(text.starts_with(r#"{"jsonrpc":"2.0""#) && !text.contains('\n'), "{text}");
            assert_eq!(read(&text), Ok(message));
        }
    }

    #[test]
    fn the_order_of_fields_and_a_missing_id_do_not_matter() {
        let response = read(r#"{"result":{"a":1},"jsonrpc":"2.0","id":2}"#);
        assert_eq!(response, Ok(Message::Response { id: Some(RequestId::Number(2)), result: Ok(json!({"a": 1})) }));
        let refused = read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}}"#);
        assert!(matches!(refused, Ok(Message::Response { id: None, result: Err(RpcError { code: -32000, .. }) })), "{refused:?}");
        // Some servers send both; the error counts.
        assert!(matches!(read(r#"{"id":1,"result":null,"error":{"code":1}}"#), Ok(Message::Response { result: Err(_), .. })));
    }

    #[test]
    fn what_is_no_message_is_refused_with_a_reason() {
        for (text, reason) in [
            ("Listening on port 80", "invalid JSON"),
            ("[]", "not an object"),
            ("{}", "no method, no result and no error"),
            (r#"{"id":1.5,"method":"x"}"#, "neither an integer nor a string"),
            (r#"{"id":{},"result":1}"#, "neither an integer nor a string"),
            (r#"{"method":3}"#, "the method is not a string"),
            (r#"{"id":1,"error":"no"}"#, "the error"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        for (text, wanted) in [
            (r#"{"id":1,"method":"a","params":{"x":{"b":1,"b":2}}}"#, (Some(1), true)),
            (r#"{"id":1,"method":"a","params":{"x":18446744073709551617}}"#, (Some(1), true)),
            (r#"{"id":1,"result":{"x":1,"x":1}}"#, (Some(1), true)),
            (r#"{"id":1,"method":"a","method":"b"}"#, (Some(1), false)),
            (r#"{"id":1,"params":{},"method":"a","params":{}}"#, (Some(1), false)),
            (r#"{"id":1,"id":2,"method":"a"}"#, (None, false)),
            (r#"{"id":18446744073709551617,"method":"a"}"#, (None, false)),
        ] {
            match read(text) {
                Err(MessageError::Ambiguous { id, inside, .. }) => {
                    assert_eq!((id, inside), (wanted.0.map(RequestId::Number), wanted.1), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        let many = |value: &str| format!(r#"{{"id":1,"result":[0{}]}}"#, format!(",{value}").repeat(MAX_VALUES));
        assert_eq!(read(&many("1")), Err(MessageError::Values));
        assert_eq!(read(&many("{}")), Err(MessageError::Values));
        let text = serde_json::to_string(&",[{\\\"".repeat(MAX_VALUES)).expect("a text");
        assert!(read(&format!(r#"{{"id":1,"result":{text}}}"#)).is_ok(), "a string is one value");
        let deep = "[".repeat(100_000);
        assert!(matches!(read(&format!(r#"{{"id":1,"result":{deep}"#)), Err(MessageError::Json(_))), "depth is bounded");
    }
}
