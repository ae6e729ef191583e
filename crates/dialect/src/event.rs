//! The results of parsing: the events of a stream, and the items of a complete message.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::fault::FaultKind;
use crate::repair::Repairs;

/// How strictly calls are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Repairs common mistakes. [`Call::repairs`] lists each repair.
    #[default]
    Lenient,
    /// Accepts only what the format's grammar allows.
    Strict,
}

impl Mode {
    pub(crate) const fn is_lenient(self) -> bool {
        matches!(self, Self::Lenient)
    }
}

/// A complete call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Index of the call in the message, starting at 0.
    pub index: usize,
    /// The model's call id, or a generated one: `call_1`, `call_2`, …
    pub id: String,
    /// The tool name, without prefixes and suffixes such as `functions.` that models add.
    pub name: String,
    /// The arguments, by parameter name.
    pub arguments: Map<String, Value>,
    /// The repairs that were needed to parse the call.
    pub repairs: Repairs,
    /// The arguments as the model wrote them, if the call is native and the arguments are a single valid JSON object.
    pub written: Option<String>,
}

/// Text that was meant as a call but is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The kind of mistake.
    pub kind: FaultKind,
    /// A message for the model that says what is wrong and what to do.
    pub error: String,
    /// The text of the call as the model wrote it.
    pub raw: String,
    /// Index of the call in the message, starting at 0.
    pub index: usize,
}

/// A part of a model's message. Each part is emitted as soon as its kind is certain.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind<'a> {
    /// Text that is not part of a call.
    Text(&'a str),
    /// The model's reasoning.
    Reasoning(&'a str),
    /// The start of a call. Exactly one [`EventKind::Call`] or [`EventKind::Malformed`] with the same index follows.
    CallOpened {
        /// Index of the call in the message.
        index: usize,
        /// The tool name.
        name: &'a str,
    },
    /// More text of a call that has started. Use it only to display progress, not for parsing.
    ArgsDelta {
        /// Index of the call in the message.
        index: usize,
        /// The raw text of this part of the call.
        text: &'a str,
    },
    /// A complete call.
    Call(Call),
    /// An invalid call.
    Malformed(Malformed),
    /// Control tokens that are neither text nor part of a call.
    Markup(&'a str),
}

/// An event and its byte range in the input. The range of [`EventKind::CallOpened`] and [`EventKind::ArgsDelta`] is empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<'a> {
    /// Byte range of the event in the input.
    pub span: Range<usize>,
    /// What the event contains.
    pub kind: EventKind<'a>,
}

/// A part of a complete message. In order, the spans of all items cover the input without gaps or overlaps.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Byte range of the item in the input.
    pub span: Range<usize>,
    /// What the item contains.
    pub content: Content,
}

/// The content of an [`Item`].
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text that is not part of a call.
    Text(String),
    /// The model's reasoning.
    Reasoning(String),
    /// A complete call.
    Call(Call),
    /// An invalid call.
    Malformed(Malformed),
    /// Control tokens that are neither text nor part of a call.
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

/// A collector that turns events into items. Adjacent parts of the same kind become one item, except calls.
#[derive(Debug, Default)]
pub struct Items(Vec<Item>);

impl Items {
    /// Adds an event. Ignores [`EventKind::CallOpened`] and [`EventKind::ArgsDelta`].
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

    /// Returns all items, in order.
    #[must_use]
    pub fn into_vec(self) -> Vec<Item> {
        self.0
    }
}
