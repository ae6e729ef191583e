//! One message of JSON-RPC: a request, a notification, or an answer.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many values a message may have. Each takes far more room in memory than on the wire, so its length alone does not bound it.
const MAX_VALUES: usize = 100_000;

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
    Answer {
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
        check_values(text)?;
        let value: Value = serde_json::from_slice(text).map_err(|error| NotAMessage::Json(error.to_string()))?;
        let Value::Object(mut fields) = value else { return Err(NotAMessage::Shape("not an object")) };
        let id = read_id(fields.remove("id"))?;
        match (fields.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Ok(Self::Request { id, method, params: fields.remove("params") }),
            (Some(Value::String(method)), None) => Ok(Self::Notification { method, params: fields.remove("params") }),
            (Some(_), _) => Err(NotAMessage::Shape("the method is no text")),
            (None, id) => Ok(Self::Answer { id, result: read_result(&mut fields)? }),
        }
    }

    /// The message as it is sent: one line without an end.
    #[must_use]
    pub fn write(&self) -> String {
        let none = Written { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None };
        let written = match self {
            Self::Request { id, method, params } => Written { id: Some(id), method: Some(method), params: params.as_ref(), ..none },
            Self::Notification { method, params } => Written { method: Some(method), params: params.as_ref(), ..none },
            Self::Answer { id, result: Ok(result) } => Written { id: id.as_ref(), result: Some(result), ..none },
            Self::Answer { id, result: Err(error) } => Written { id: id.as_ref(), error: Some(error), ..none },
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

/// Whether a text has so few values that it can be read as JSON. It need not be JSON.
///
/// # Errors
/// Where it has too many.
pub fn check_values(text: &[u8]) -> Result<(), NotAMessage> {
    // A value and what separates it from the next take two bytes at least.
    if text.len() / 2 <= MAX_VALUES {
        return Ok(());
    }
    let (mut count, mut in_string, mut bytes) = (0, false, text.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => drop(bytes.next()),
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    if count > MAX_VALUES { Err(NotAMessage::Values) } else { Ok(()) }
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
            Message::Answer { id: Some(RequestId::Number(-1)), result: Ok(json!({})) },
            Message::Answer { id: None, result: Err(error) },
        ] {
            let text = message.write();
            assert!(text.starts_with(r#"{"jsonrpc":"2.0""#) && !text.contains('\n'), "{text}");
            assert_eq!(read(&text), Ok(message));
        }
    }

    #[test]
    fn the_order_of_fields_and_a_missing_id_do_not_matter() {
        let answer = read(r#"{"result":{"a":1},"jsonrpc":"2.0","id":2}"#);
        assert_eq!(answer, Ok(Message::Answer { id: Some(RequestId::Number(2)), result: Ok(json!({"a": 1})) }));
        let refused = read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}}"#);
        assert!(matches!(refused, Ok(Message::Answer { id: None, result: Err(RpcError { code: -32000, .. }) })), "{refused:?}");
        // Some say both; that something is wrong counts.
        assert!(matches!(read(r#"{"id":1,"result":null,"error":{"code":1}}"#), Ok(Message::Answer { result: Err(_), .. })));
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
        let many = |value: &str| format!(r#"{{"id":1,"result":[0{}]}}"#, format!(",{value}").repeat(MAX_VALUES));
        assert_eq!(read(&many("1")), Err(NotAMessage::Values));
        assert_eq!(read(&many("{}")), Err(NotAMessage::Values));
        let text = serde_json::to_string(&",[{\\\"".repeat(MAX_VALUES)).expect("a text");
        assert!(read(&format!(r#"{{"id":1,"result":{text}}}"#)).is_ok(), "what stands in a text is one value");
        let deep = "[".repeat(100_000);
        assert!(matches!(read(&format!(r#"{{"id":1,"result":{deep}"#)), Err(NotAMessage::Json(_))), "depth is bounded");
    }
}
