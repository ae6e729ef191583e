//! One message of JSON-RPC: a request, a notification, or an answer.

use std::fmt;

use helve_core::json::{self, JsonError, JsonLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many values a message may have. Each takes far more room in memory than on the wire, so its length alone does not bound it.
const MAX_VALUES: usize = 100_000;
/// How deep they may be inside each other.
const MAX_DEPTH: usize = 127;

/// Names a request until it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A whole number.
    Number(i64),
    /// A text.
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

/// Why the other side refuses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// See [`CODES`](crate::CODES).
    pub code: i64,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// For programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// What one side says to the other.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Something that must be answered.
    Request {
        /// The answer has the same.
        id: RequestId,
        /// What is wanted.
        method: String,
        /// With what.
        params: Option<Value>,
    },
    /// Something that must not be answered.
    Notification {
        /// What happened.
        method: String,
        /// What else is known of it.
        params: Option<Value>,
    },
    /// What came of a request.
    Response {
        /// The request; nothing where the other side could not read it.
        id: Option<RequestId>,
        /// Its result, or why there is none.
        result: Result<Value, RpcError>,
    },
}

/// Something that is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAMessage {
    /// It is no JSON.
    #[error("it is no JSON: {0}")]
    Json(String),
    /// It has too many values.
    #[error("it has more than {MAX_VALUES} values")]
    Values,
    /// It is JSON that can be read in more than one way, or not without a loss.
    #[error("it is ambiguous: {reason}")]
    Ambiguous {
        /// The request or the answer that it is about, where that is clear.
        id: Option<RequestId>,
        /// Whether only what the message carries is concerned, not the message itself.
        inside: bool,
        /// What is wrong, in words for whoever sent it.
        reason: String,
    },
    /// It is JSON, and something else.
    #[error("it is no message: {0}")]
    Shape(&'static str),
}

impl Message {
    /// Reads one message. How long it may be is for whoever receives it to say.
    ///
    /// # Errors
    /// Where it is none.
    pub fn read(text: &[u8]) -> Result<Self, NotAMessage> {
        Self::of(parse(text)?)
    }

    /// Reads one message, or several as servers of one older version may send them.
    ///
    /// # Errors
    /// Where one of them is none.
    pub fn read_several(text: &[u8]) -> Result<Vec<Self>, NotAMessage> {
        match parse(text)? {
            Value::Array(several) => several.into_iter().map(Self::of).collect(),
            one => Ok(vec![Self::of(one)?]),
        }
    }

    fn of(value: Value) -> Result<Self, NotAMessage> {
        let Value::Object(mut fields) = value else { return Err(NotAMessage::Shape("not an object")) };
        let id = read_id(fields.remove("id"))?;
        match (fields.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Ok(Self::Request { id, method, params: fields.remove("params") }),
            (Some(Value::String(method)), None) => Ok(Self::Notification { method, params: fields.remove("params") }),
            (Some(_), _) => Err(NotAMessage::Shape("the method is no text")),
            (None, id) => Ok(Self::Response { id, result: read_result(&mut fields)? }),
        }
    }

    /// The message as it is sent: one line without an end.
    #[must_use]
    pub fn write(&self) -> String {
        let none = Written { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None };
        let written = match self {
            Self::Request { id, method, params } => Written { id: Some(id), method: Some(method), params: params.as_ref(), ..none },
            Self::Notification { method, params } => Written { method: Some(method), params: params.as_ref(), ..none },
            Self::Response { id, result: Ok(result) } => Written { id: id.as_ref(), result: Some(result), ..none },
            Self::Response { id, result: Err(error) } => Written { id: id.as_ref(), error: Some(error), ..none },
        };
        // Nothing in it can fail to be written: all names are texts.
        serde_json::to_string(&written).unwrap_or_default()
    }
}

/// A message's fields, in the order in which they are written. An unknown id is left out: `null` is no id in any version.
#[derive(Serialize)]
struct Written<'a> {
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

fn parse(text: &[u8]) -> Result<Value, NotAMessage> {
    let limits = JsonLimits { bytes: usize::MAX, depth: MAX_DEPTH, nodes: MAX_VALUES };
    json::parse(text, limits).map_err(|error| not_json(&error, text))
}

fn not_json(error: &JsonError, text: &[u8]) -> NotAMessage {
    let inside = match error {
        JsonError::TooMany { .. } => return NotAMessage::Values,
        JsonError::DuplicateKey { depth, .. } => *depth > 0,
        JsonError::WideInteger => true,
        JsonError::Syntax { message } => return NotAMessage::Json(message.clone()),
        _ => return NotAMessage::Json(error.to_string()),
    };
    // Nothing else of the message is looked at again, and an id that comes twice is none.
    let id = serde_json::from_slice::<OnlyId>(text).ok().and_then(|message| message.id);
    NotAMessage::Ambiguous { inside: inside && id.is_some(), id, reason: error.to_string() }
}

#[derive(Deserialize)]
struct OnlyId {
    id: Option<RequestId>,
}

fn read_id(id: Option<Value>) -> Result<Option<RequestId>, NotAMessage> {
    match id {
        None | Some(Value::Null) => Ok(None),
        Some(id) => serde_json::from_value(id).map(Some).map_err(|_| NotAMessage::Shape("the id is neither a whole number nor a text")),
    }
}

fn read_result(fields: &mut Map<String, Value>) -> Result<Result<Value, RpcError>, NotAMessage> {
    match (fields.remove("result"), fields.remove("error")) {
        (Some(result), None) => Ok(Ok(result)),
        (_, Some(error)) => serde_json::from_value(error).map(Err).map_err(|_| NotAMessage::Shape("the error has no code, or is none")),
        (None, None) => Err(NotAMessage::Shape("it has no method, no result and no error")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Message, NotAMessage> {
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
        let answer = read(r#"{"result":{"a":1},"jsonrpc":"2.0","id":2}"#);
        assert_eq!(answer, Ok(Message::Response { id: Some(RequestId::Number(2)), result: Ok(json!({"a": 1})) }));
        let refused = read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}}"#);
        assert!(matches!(refused, Ok(Message::Response { id: None, result: Err(RpcError { code: -32000, .. }) })), "{refused:?}");
        // Some say both; that something is wrong counts.
        assert!(matches!(read(r#"{"id":1,"result":null,"error":{"code":1}}"#), Ok(Message::Response { result: Err(_), .. })));
    }

    #[test]
    fn what_is_no_message_is_refused_with_a_reason() {
        for (text, reason) in [
            ("Listening on port 80", "no JSON"),
            ("[]", "not an object"),
            ("{}", "no method, no result and no error"),
            (r#"{"id":1.5,"method":"x"}"#, "neither a whole number nor a text"),
            (r#"{"id":{},"result":1}"#, "neither a whole number nor a text"),
            (r#"{"method":3}"#, "the method is no text"),
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
                Err(NotAMessage::Ambiguous { id, inside, .. }) => {
                    assert_eq!((id, inside), (wanted.0.map(RequestId::Number), wanted.1), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        let many = |value: &str| format!(r#"{{"id":1,"result":[0{}]}}"#, format!(",{value}").repeat(MAX_VALUES));
        assert_eq!(read(&many("1")), Err(NotAMessage::Values));
        assert_eq!(read(&many("{}")), Err(NotAMessage::Values));
        let text = serde_json::to_string(&",[{\\\"".repeat(MAX_VALUES)).expect("a text");
        assert!(read(&format!(r#"{{"id":1,"result":{text}}}"#)).is_ok(), "what stands in a text is one value");
        let deep = "[".repeat(100_000);
        assert!(matches!(read(&format!(r#"{{"id":1,"result":{deep}"#)), Err(NotAMessage::Json(_))), "depth is bounded");
    }
}
