//! What a model said: the events of a stream, and the items of a whole message.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::fault::FaultKind;
use crate::repair::Repairs;

/// How much is forgiven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Common mistakes are mended, and each repair is named on the call.
    #[default]
    Lenient,
    /// Only what the format's grammar allows.
    Strict,
}

impl Mode {
    pub(crate) const fn is_lenient(self) -> bool {
        matches!(self, Self::Lenient)
    }
}

/// A call that is whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Which call of the message, counted from 0.
    pub index: usize,
    /// The model's own id, or one that was made: `call_1`, `call_2`, …
    pub id: String,
    /// The tool's name, without what the model put around it.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// What was mended.
    pub repairs: Repairs,
    /// The arguments as the model wrote them, where it made a native call with one proper JSON object.
    pub written: Option<String>,
}

/// Something that was meant as a call, and is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// What kind of mistake it is.
    pub kind: FaultKind,
    /// What is wrong and what to do, in words for the model.
    pub error: String,
    /// What the model wrote.
    pub raw: String,
    /// Which call of the message it would have been.
    pub index: usize,
}

/// One piece of what a model says, as soon as it is certain.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind<'a> {
    /// Words for the reader.
    Text(&'a str),
    /// The model's thoughts.
    Reasoning(&'a str),
    /// A call has begun. Exactly one [`EventKind::Call`] or [`EventKind::Malformed`] with its index follows.
    CallOpened {
        /// Which call of the message.
        index: usize,
        /// The tool's name.
        name: &'a str,
    },
    /// More of a call that has begun, as the model writes it: to show that something happens, not to be read.
    ArgsDelta {
        /// Which call of the message.
        index: usize,
        /// The raw text.
        text: &'a str,
    },
    /// A call is whole.
    Call(Call),
    /// Something was meant as a call, and is none.
    Malformed(Malformed),
    /// Control tokens that are neither text nor part of a call.
    Markup(&'a str),
}

/// A piece with its place in the input, in bytes. What is only announced has an empty place.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<'a> {
    /// Where in the input.
    pub span: Range<usize>,
    /// What.
    pub kind: EventKind<'a>,
}

/// One part of a whole message. The spans of all items, in order, cover the input without gap or overlap.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its place in the input, in bytes.
    pub span: Range<usize>,
    /// What it is.
    pub content: Content,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Words for the reader.
    Text(String),
    /// The model's thoughts.
    Reasoning(String),
    /// A call.
    Call(Call),
    /// Something that was meant as a call.
    Malformed(Malformed),
    /// Control tokens.
    Markup,
}

impl Serialize for Item {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        let kind = match &self.content {
            Content::Text(_) => "text",
            Content::Reasoning(_) => "reasoning",
            Content::Call(_) => "call",
            Content::Malformed(_) => "malformed",
            Content::Markup => "markup",
        };
        map.serialize_entry("type", kind)?;
        map.serialize_entry("span", &[self.span.start, self.span.end])?;
        match &self.content {
            Content::Text(text) | Content::Reasoning(text) => map.serialize_entry("text", text)?,
            Content::Call(call) => {
                map.serialize_entry("id", &call.id)?;
                map.serialize_entry("name", &call.name)?;
                map.serialize_entry("arguments", &call.arguments)?;
                map.serialize_entry("repairs", &call.repairs)?;
            }
            Content::Malformed(malformed) => {
                map.serialize_entry("raw", &malformed.raw)?;
                map.serialize_entry("kind", &malformed.kind)?;
                map.serialize_entry("error", &malformed.error)?;
            }
            Content::Markup => {}
        }
        map.end()
    }
}

/// Collects events into items: pieces of one text become one.
#[derive(Debug, Default)]
pub struct Items(Vec<Item>);

impl Items {
    /// Takes one event.
    pub fn push(&mut self, event: Event<'_>) {
        let content = match event.kind {
            EventKind::CallOpened { .. } | EventKind::ArgsDelta { .. } => return,
            EventKind::Text(text) => match self.0.last_mut() {
                Some(Item { span, content: Content::Text(before) }) => {
                    before.push_str(text);
                    span.end = event.span.end;
                    return;
                }
                _ => Content::Text(text.to_owned()),
            },
            EventKind::Reasoning(text) => match self.0.last_mut() {
                Some(Item { span, content: Content::Reasoning(before) }) => {
                    before.push_str(text);
                    span.end = event.span.end;
                    return;
                }
                _ => Content::Reasoning(text.to_owned()),
            },
            EventKind::Markup(_) => match self.0.last_mut() {
                Some(Item { span, content: Content::Markup }) => {
                    span.end = event.span.end;
                    return;
                }
                _ => Content::Markup,
            },
            EventKind::Call(call) => Content::Call(call),
            EventKind::Malformed(malformed) => Content::Malformed(malformed),
        };
        self.0.push(Item { span: event.span, content });
    }

    /// All items.
    #[must_use]
    pub fn into_vec(self) -> Vec<Item> {
        self.0
    }
}
