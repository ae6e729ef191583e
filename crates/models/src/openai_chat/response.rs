//! What is read, whole or in events, with all the liberties that those who speak this wire take.

use std::fmt;
use std::marker::PhantomData;

use helve_core::{Deltas, EndReason, ModelDelta, ModelError, Usage};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;

use crate::ending::{Ending, is_empty, unreadable};
use crate::failure;
use crate::number::{Count, money, perhaps};
use crate::text::Text;
use crate::wire::{EventReader, nonsense, parts};

pub(super) fn whole(body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    // Checked once as a whole, not string by string.
    let text = std::str::from_utf8(body).map_err(|error| nonsense("the answer", &error, body))?;
    let reply: Chunk<'_> = serde_json::from_str(text).map_err(|error| nonsense("the answer", &error, body))?;
    let mut reader = Reader { ending: Ending { over: true, ..Ending::default() }, ..Reader::default() };
    reader.take(reply, body, into)?;
    if !reader.spoke {
        return Err(nonsense("the answer", &"it has no message", body));
    }
    reader.finish(into)
}

/// Reads an answer that comes in events.
#[derive(Debug, Default)]
pub(super) struct Reader {
    ending: Ending,
    spoke: bool,
}

impl EventReader for Reader {
    fn event(&mut self, _: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        if data.trim_ascii() == b"[DONE]" {
            self.ending.over = true;
            return Ok(());
        }
        if is_empty(data) {
            return Ok(());
        }
        let chunk = serde_json::from_slice(data).map_err(|error| unreadable(&error, data))?;
        self.take(chunk, data, into)
    }

    fn is_over(&self) -> bool {
        self.ending.over
    }

    fn finish(&mut self, into: &mut Deltas) -> Result<(), ModelError> {
        self.ending.tell(into)
    }
}

impl Reader {
    fn take(&mut self, chunk: Chunk<'_>, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(failure::of_object(&error));
        }
        if let Some(usage) = chunk.usage {
            into.push(ModelDelta::Usage(usage.into()));
        }
        let Some(choice) = chunk.choices.0 else { return Ok(()) };
        if let Some(error) = choice.error.filter(|error| !error.is_null()) {
            return Err(failure::of_object(&error));
        }
        let end = choice.finish_reason.map(|reason| match &*reason.0 {
            "length" | "max_tokens" => EndReason::Length,
            "content_filter" | "safety" => EndReason::Filter,
            "tool_calls" | "function_call" => EndReason::Calls,
            _ => EndReason::Stop,
        });
        self.ending.reason = end.or(self.ending.reason);
        let Some(said) = choice.delta.or(choice.message) else { return Ok(()) };
        self.spoke = true;
        let thoughts = said.reasoning_content.filter(|text| !text.0.is_empty()).or(said.reasoning);
        if let Some(text) = thoughts.filter(|text| !text.0.is_empty()) {
            into.push(ModelDelta::Reasoning(&text.0));
        }
        for detail in said.reasoning_details.unwrap_or_default() {
            into.push(ModelDelta::ProviderPart(&detail));
        }
        if let Some(text) = said.content.filter(|text| !text.0.is_empty()).or(said.refusal).filter(|text| !text.0.is_empty()) {
            into.push(ModelDelta::Text(&text.0));
        }
        for call in said.tool_calls.unwrap_or_default() {
            self.ending.call();
            let Some(function) = call.function else { return Err(nonsense("a call", &"it has no `function`", data)) };
            into.push(ModelDelta::Call {
                index: call.index.and_then(|index| u32::try_from(index).ok()),
                id: call.id.as_ref().map(|id| &*id.0),
                name: function.name.as_ref().map(|name| &*name.0),
                arguments: function.arguments.as_ref().map_or("", |arguments| &*arguments.0),
            });
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: First<Choice<'a>>,
    #[serde(default, deserialize_with = "perhaps")]
    usage: Option<UsageWire>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Said<'a>>,
    #[serde(borrow)]
    message: Option<Said<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning: Option<Text<'a>>,
    #[serde(default, deserialize_with = "parts")]
    reasoning_details: Option<Vec<Value>>,
    #[serde(borrow, default, deserialize_with = "parts")]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    index: Option<i64>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct UsageWire {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default, deserialize_with = "perhaps")]
    prompt_tokens_details: Option<Details>,
    #[serde(default, deserialize_with = "money")]
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<Count>,
}

impl From<UsageWire> for Usage {
    fn from(wire: UsageWire) -> Self {
        let cached_tokens = wire.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or_default();
        Self {
            input_tokens: wire.prompt_tokens.0,
            cached_tokens: cached_tokens.0,
            output_tokens: wire.completion_tokens.0,
            cost: wire.cost,
        }
    }
}

/// The first of a list. The others, which nobody asked for, are stepped over.
struct First<T>(Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = First<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_unit<E>(self) -> Result<First<T>, E> {
                Ok(First(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<T>, A::Error> {
                let first = list.next_element()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_any(List(PhantomData))
    }
}
