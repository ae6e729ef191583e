//! A request as a script sees it: what was asked, whichever wire it came by.

use std::collections::BTreeMap;

use hyper::HeaderMap;
use hyper::header::HeaderName;
use serde_json::Value;

use super::answer::Call;
use super::wire::Wire;

/// A request that the server received.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// Which wire it speaks, by its path.
    pub wire: Wire,
    /// How many requests for an answer came before.
    pub number: usize,
    /// `POST` or another method.
    pub method: String,
    /// The path, with the query.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; a string if it was no JSON, and null if there was none.
    pub body: Value,
    /// The model that is asked.
    pub model: String,
    /// Whether the answer is to be a stream.
    pub streaming: bool,
    /// What was said so far.
    pub turns: Vec<Turn>,
    /// The names of the tools that are offered natively.
    pub tools: Vec<String>,
    /// The schema that the answer must fit; `{}` if any JSON will do.
    pub schema: Option<Value>,
}

/// Something that was said before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Instructions.
    System(String),
    /// Words of the user.
    User(String),
    /// An earlier answer.
    Assistant {
        /// Its words.
        text: String,
        /// Its calls.
        calls: Vec<Call>,
    },
    /// What came of a call.
    Result {
        /// The id of the call; empty where the wire has none.
        id: String,
        /// The tool's name; empty where no earlier call has this id.
        tool: String,
        /// What the model reads.
        text: String,
    },
}

impl Request {
    /// What the user said last; empty if the user never spoke.
    #[must_use]
    pub fn user(&self) -> &str {
        let mut said = self.turns.iter().rev().filter_map(|turn| if let Turn::User(text) = turn { Some(text.as_str()) } else { None });
        said.next().unwrap_or_default()
    }

    /// The instructions, one to a line.
    #[must_use]
    pub fn system(&self) -> String {
        let texts = self.turns.iter().filter_map(|turn| if let Turn::System(text) = turn { Some(text.as_str()) } else { None });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// What came of the calls since the user last spoke, in order.
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

    /// Reads what a request says.
    pub(super) fn read(method: String, path: String, headers: &HeaderMap, body: Value) -> Self {
        let wire = Wire::of(&method, &path);
        let asked = wire.read(&path, &body);
        let mut turns = asked.turns;
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
            model: asked.model,
            streaming: asked.streaming,
            turns,
            tools: asked.tools,
            schema: asked.schema,
        }
    }
}

/// What a wire reads from a path and a body.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub model: String,
    pub streaming: bool,
    pub turns: Vec<Turn>,
    pub tools: Vec<String>,
    pub schema: Option<Value>,
}

/// The items of a list; none if it is no list.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A string, or nothing.
pub(super) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The words of a content: a string, or parts that have a `text`.
pub(super) fn words(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => string(content),
    }
}

/// Most wires name a result by its call's id only.
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
