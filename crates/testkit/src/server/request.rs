//! A request as a script sees it, independent of the wire.

use std::collections::BTreeMap;

use hyper::HeaderMap;
use hyper::header::HeaderName;
use serde_json::Value;

use super::output::Call;
use super::wire::Wire;

/// A request that the server received.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// Its wire format, determined by the path.
    pub wire: Wire,
    /// Number of model requests before this one.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; a string if it is not JSON, null if there is none.
    pub body: Value,
    /// The requested model.
    pub model: String,
    /// Whether the client requests a stream.
    pub streaming: bool,
    /// The conversation.
    pub turns: Vec<Turn>,
    /// Names of the tools offered natively.
    pub tools: Vec<String>,
    /// The schema of structured output; `{}` for any JSON.
    pub schema: Option<Value>,
}

/// A turn of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// System instructions.
    System(String),
    /// A user message.
    User(String),
    /// A model response.
    Assistant {
        /// The text.
        text: String,
        /// The calls.
        calls: Vec<Call>,
    },
    /// The result of a call.
    Result {
        /// The call id; empty if the wire has none.
        id: String,
        /// The tool name; empty if no earlier call has this id.
        tool: String,
        /// The text for the model.
        text: String,
    },
}

impl Request {
    /// The last user message; empty if there is none.
    #[must_use]
    pub fn user(&self) -> &str {
        let mut said = self.turns.iter().rev().filter_map(|turn| if let Turn::User(text) = turn { Some(text.as_str()) } else { None });
        said.next().unwrap_or_default()
    }

    /// The system instructions, one per line.
    #[must_use]
    pub fn system(&self) -> String {
        let texts = self.turns.iter().filter_map(|turn| if let Turn::System(text) = turn { Some(text.as_str()) } else { None });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The results since the last user message, in order.
    #[must_use]
    pub fn results(&self) -> Vec<&str> {
        let since = self.turns.iter().rposition(|turn| matches!(turn, Turn::User(_))).unwrap_or_default();
        self.turns[since..]
            .iter()
            .filter_map(|turn| if let Turn::Result { text, .. } = turn { Some(text.as_str()) } else { None })
            .collect()
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// Parses a request.
    pub(super) fn read(method: String, path: String, headers: &HeaderMap, body: Value) -> Self {
        let wire = Wire::of(&method, &path);
        let parsed = wire.read(&path, &body);
        let mut turns = parsed.turns;
        name_results(&mut turns);
        let header = |name: &HeaderName| {
            let values: Vec<_> = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
            (name.to_string(), values.join(", "))
        };
        Self {
            wire,
            number: 0,
            method,
            path,
            headers: headers.keys().map(header).collect(),
            body,
            model: parsed.model,
            streaming: parsed.streaming,
            turns,
            tools: parsed.tools,
            schema: parsed.schema,
        }
    }
}

/// What a wire parses from a path and a body.
#[derive(Debug, Default)]
pub(super) struct ParsedRequest {
    pub model: String,
    pub streaming: bool,
    pub turns: Vec<Turn>,
    pub tools: Vec<String>,
    pub schema: Option<Value>,
}

/// The items of a list; empty if the value is no list.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A string; empty if the value is none.
pub(super) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The text of a content: a string, or parts with `text`.
pub(super) fn words(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => string(content),
    }
}

/// Adds tool names to results, which most wires identify by call id only.
fn name_results(turns: &mut [Turn]) {
    let calls = |turn: &Turn| if let Turn::Assistant { calls, .. } = turn { calls.clone() } else { Vec::new() };
    let known: Vec<Call> = turns.iter().flat_map(calls).collect();
    for turn in turns {
        if let Turn::Result { id, tool, .. } = turn
            && tool.is_empty()
            && let Some(call) = known.iter().rfind(|call| call.id.as_ref() == Some(id))
        {
            tool.clone_from(&call.name);
        }
    }
}
