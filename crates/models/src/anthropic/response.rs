//! Parses responses, whole or as events: blocks of text, reasoning and calls.

use helve_core::{Deltas, EndReason, ModelDelta, ModelError, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ending::{Ending, invalid_event, is_empty};
use crate::failure;
use crate::list::{MAX_PARTS, list};
use crate::number::{Count, optional};
use crate::text::Text;
use crate::wire::{EventReader, invalid, too_many_parts};

pub(super) fn whole(body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    let response: Response = serde_json::from_slice(body).map_err(|error| invalid("the response", &error, body))?;
    failure::check(response.error.as_ref())?;
    let Some(content) = response.content else { return Err(invalid("the response", &"it has no `content`", body)) };
    let mut reader = Reader { ending: Ending { over: true, ..Ending::default() }, ..Reader::default() };
    reader.used(response.usage.as_ref(), into);
    for (index, block) in (0..).zip(content) {
        reader.begin(index, block, into);
        reader.close(index, into);
    }
    reader.ending.reason = response.stop_reason.as_deref().map(reason);
    reader.finish(into)
}

/// The parser for a streamed response.
#[derive(Debug, Default)]
pub(super) struct Reader {
    ending: Ending,
    usage: UsageWire,
    /// The blocks in progress, with their indexes.
    open: Vec<(i64, Block)>,
}

/// A block in progress.
#[derive(Debug)]
enum Block {
    /// The index of a call, and the arguments in its start event, which are used if no others follow.
    Call(u32, Option<String>),
    /// A reasoning block, which must be sent back to the provider unchanged.
    Reasoning(Map<String, Value>),
}

impl EventReader for Reader {
    fn event(&mut self, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        if is_empty(data) {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_slice(data).map_err(|error| invalid_event(&error, data))?;
        let index = event.index.unwrap_or_default();
        failure::check(event.error.as_ref())?;
        if self.open.len() > MAX_PARTS {
            return Err(too_many_parts());
        }
        match event.kind.as_ref().map_or(name, |kind| &*kind.0) {
            "message_start" => self.used(event.message.and_then(|message| message.usage).as_ref(), into),
            "content_block_start" => self.begin(index, event.content_block.unwrap_or_default(), into),
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.more(index, delta, into);
                }
            }
            "content_block_stop" => self.close(index, into),
            "message_delta" => {
                self.used(event.usage.as_ref(), into);
                let stop_reason = event.delta.and_then(|delta| delta.stop_reason);
                self.ending.reason = stop_reason.map(|said| reason(&said.0)).or(self.ending.reason);
            }
            "message_stop" => self.ending.over = true,
            _ => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.ending.over
    }

    fn finish(&mut self, into: &mut Deltas) -> Result<(), ModelError> {
        for index in self.open.iter().map(|(index, _)| *index).collect::<Vec<_>>() {
            self.close(index, into);
        }
        self.ending.finish(into)
    }
}

impl Reader {
    /// Updates the usage, and appends the new total.
    fn used(&mut self, usage: Option<&UsageWire>, into: &mut Deltas) {
        if let Some(usage) = usage {
            self.usage.update(usage);
            into.push(ModelDelta::Usage(self.usage.total()));
        }
    }

    fn begin(&mut self, index: i64, block: Value, into: &mut Deltas) {
        let Value::Object(block) = block else { return };
        let text = |name: &str| block.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        match text("type") {
            Some("text") => {
                if let Some(text) = text("text") {
                    into.push(ModelDelta::Text(text));
                }
            }
            Some("tool_use") => {
                let number = self.ending.call();
                into.push(ModelDelta::Call { index: Some(number), id: text("id"), name: text("name"), arguments: "" });
                let input = block.get("input").filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
                self.open.push((index, Block::Call(number, input.map(ToString::to_string))));
            }
            Some("thinking" | "redacted_thinking") => {
                if let Some(thought) = text("thinking") {
                    into.push(ModelDelta::Reasoning(thought));
                }
                self.open.push((index, Block::Reasoning(block)));
            }
            _ => {}
        }
    }

    fn more(&mut self, index: i64, delta: Delta<'_>, into: &mut Deltas) {
        if let Some(text) = delta.text {
            into.push(ModelDelta::Text(&text.0));
        }
        match self.open.iter_mut().rfind(|(at, _)| *at == index).map(|(_, block)| block) {
            Some(Block::Call(number, input)) => {
                if let Some(piece) = delta.partial_json.filter(|piece| !piece.0.is_empty()) {
                    into.push(ModelDelta::Call { index: Some(*number), id: None, name: None, arguments: &piece.0 });
                    *input = None;
                }
            }
            Some(Block::Reasoning(thought)) => {
                if let Some(text) = &delta.thinking {
                    into.push(ModelDelta::Reasoning(&text.0));
                }
                for (name, piece) in [("thinking", delta.thinking), ("signature", delta.signature)] {
                    if let Some(piece) = piece {
                        append(thought, name, &piece.0);
                    }
                }
            }
            None => {}
        }
    }

    fn close(&mut self, index: i64, into: &mut Deltas) {
        let Some(at) = self.open.iter().position(|(at, _)| *at == index) else { return };
        match self.open.remove(at).1 {
            Block::Call(number, Some(input)) => {
                into.push(ModelDelta::Call { index: Some(number), id: None, name: None, arguments: &input });
            }
            Block::Call(_, None) => {}
            Block::Reasoning(thought) => into.push(ModelDelta::ProviderPart(&Value::Object(thought))),
        }
    }
}

fn append(thought: &mut Map<String, Value>, name: &str, piece: &str) {
    if let Some(Value::String(whole)) = thought.get_mut(name) {
        whole.push_str(piece);
    } else {
        thought.insert(name.to_owned(), piece.into());
    }
}

fn reason(said: &str) -> EndReason {
    match said {
        "tool_use" => EndReason::Calls,
        "max_tokens" | "model_context_window_exceeded" => EndReason::Length,
        "refusal" => EndReason::Filter,
        _ => EndReason::Stop,
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: Option<Text<'a>>,
    index: Option<i64>,
    delta: Option<Delta<'a>>,
    content_block: Option<Value>,
    message: Option<Response>,
    #[serde(default, deserialize_with = "optional")]
    usage: Option<UsageWire>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Delta<'a> {
    text: Option<Text<'a>>,
    partial_json: Option<Text<'a>>,
    thinking: Option<Text<'a>>,
    signature: Option<Text<'a>>,
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default, deserialize_with = "list")]
    content: Option<Vec<Value>>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "optional")]
    usage: Option<UsageWire>,
    error: Option<Value>,
}

/// The usage so far. Later events contain only the counts that changed.
#[derive(Debug, Default, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the wire's names")]
struct UsageWire {
    input_tokens: Option<Count>,
    cache_creation_input_tokens: Option<Count>,
    cache_read_input_tokens: Option<Count>,
    output_tokens: Option<Count>,
}

impl UsageWire {
    /// Replaces the counts that `newer` contains.
    fn update(&mut self, newer: &Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens = newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
    }

    /// Converts the usage. The API counts input tokens that are read from the cache or written to it separately; this adds them up.
    fn total(&self) -> Usage {
        let parts = [self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens];
        Usage {
            input_tokens: parts.iter().flatten().fold(0u64, |sum, part| sum.saturating_add(part.0)),
            cached_tokens: self.cache_read_input_tokens.unwrap_or_default().0,
            output_tokens: self.output_tokens.unwrap_or_default().0,
            cost: None,
        }
    }
}
