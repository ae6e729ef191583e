//! Parses responses, whole or as events, and tolerates the deviations of compatible servers.

use helve_core::{Deltas, EndReason, ModelDelta, ModelError, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::ending::{Ending, invalid_event, is_empty};
use crate::failure;
use crate::list::{First, list};
use crate::number::{Count, InputDetails, cost, optional};
use crate::text::Text;
use crate::wire::{EventReader, invalid};

pub(super) fn whole(body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    // Checking UTF-8 once for the whole body is faster than checking each string.
    let text = std::str::from_utf8(body).map_err(|error| invalid("the response", &error, body))?;
    let chunk: Chunk<'_> = serde_json::from_str(text).map_err(|error| invalid("the response", &error, body))?;
    let mut reader = Reader { ending: Ending { over: true, ..Ending::default() }, ..Reader::default() };
    reader.take(chunk, body, into)?;
    if !reader.has_message {
        return Err(invalid("the response", &"it has no message", body));
    }
    reader.finish(into)
}

/// The parser for a streamed response.
#[derive(Debug, Default)]
pub(super) struct Reader {
    ending: Ending,
    /// Whether the response contains a message.
    has_message: bool,
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
        let chunk = serde_json::from_slice(data).map_err(|error| invalid_event(&error, data))?;
        self.take(chunk, data, into)
    }

    fn is_over(&self) -> bool {
        self.ending.over
    }

    fn finish(&mut self, into: &mut Deltas) -> Result<(), ModelError> {
        self.ending.finish(into)
    }
}

impl Reader {
    fn take(&mut self, chunk: Chunk<'_>, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        failure::check(chunk.error.as_ref())?;
        if let Some(usage) = chunk.usage {
            into.push(ModelDelta::Usage(usage.into()));
        }
        let Some(First(Some(choice))) = chunk.choices else { return Ok(()) };
        failure::check(choice.error.as_ref())?;
        let end = choice.finish_reason.map(|reason| match &*reason.0 {
            "length" | "max_tokens" => EndReason::Length,
            "content_filter" | "safety" => EndReason::Filter,
            "tool_calls" | "function_call" => EndReason::Calls,
            _ => EndReason::Stop,
        });
        self.ending.reason = end.or(self.ending.reason);
        let Some(message) = choice.delta.or(choice.message) else { return Ok(()) };
        self.has_message = true;
        let reasoning = message.reasoning_content.filter(|text| !text.0.is_empty()).or(message.reasoning);
        if let Some(text) = reasoning.filter(|text| !text.0.is_empty()) {
            into.push(ModelDelta::Reasoning(&text.0));
        }
        for detail in message.reasoning_details.unwrap_or_default() {
            into.push(ModelDelta::ProviderPart(&detail));
        }
        if let Some(text) = message.content.filter(|text| !text.0.is_empty()).or(message.refusal).filter(|text| !text.0.is_empty()) {
            into.push(ModelDelta::Text(&text.0));
        }
        for call in message.tool_calls.unwrap_or_default() {
            self.ending.call();
            let Some(function) = call.function else { return Err(invalid("a call", &"it has no `function`", data)) };
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
#[serde(bound(deserialize = "'de: 'a"))]
struct Chunk<'a> {
    #[serde(default, deserialize_with = "list")]
    choices: Option<First<Choice<'a>>>,
    #[serde(default, deserialize_with = "optional")]
    usage: Option<UsageWire>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Choice<'a> {
    delta: Option<Message<'a>>,
    message: Option<Message<'a>>,
    finish_reason: Option<Text<'a>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Message<'a> {
    content: Option<Text<'a>>,
    refusal: Option<Text<'a>>,
    reasoning_content: Option<Text<'a>>,
    reasoning: Option<Text<'a>>,
    #[serde(default, deserialize_with = "list")]
    reasoning_details: Option<Vec<Value>>,
    #[serde(default, deserialize_with = "list")]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Call<'a> {
    index: Option<i64>,
    id: Option<Text<'a>>,
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Function<'a> {
    name: Option<Text<'a>>,
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct UsageWire {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default, deserialize_with = "optional")]
    prompt_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "cost")]
    cost: Option<f64>,
}

impl From<UsageWire> for Usage {
    fn from(wire: UsageWire) -> Self {
        let cached_tokens = wire.prompt_tokens_details.unwrap_or_default().cached_tokens;
        Self {
            input_tokens: wire.prompt_tokens.0,
            cached_tokens: cached_tokens.0,
            output_tokens: wire.completion_tokens.0,
            cost: wire.cost,
        }
    }
}
