//! What is read, whole or in events: blocks of text, thoughts and calls.

use helve_core::{Deltas, EndReason, ModelDelta, ModelError, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ending::{Ending, is_empty, unreadable};
use crate::failure;
use crate::number::{Count, perhaps};
use crate::text::Text;
use crate::wire::{EventReader, MAX_PARTS, nonsense, parts, too_many_parts};

pub(super) fn whole(body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    let reply: Reply = serde_json::from_slice(body).map_err(|error| nonsense("the answer", &error, body))?;
    if let Some(error) = reply.error.filter(|error| !error.is_null()) {
        return Err(failure::of_object(&error));
    }
    let Some(content) = reply.content else { return Err(nonsense("the answer", &"it has no `content`", body)) };
    let mut reader = Reader { ending: Ending { over: true, ..Ending::default() }, ..Reader::default() };
    reader.used(reply.usage.as_ref(), into);
    for (place, block) in (0..).zip(content) {
        reader.begin(place, block, into);
        reader.close(place, into);
    }
    reader.ending.reason = reply.stop_reason.as_deref().map(reason);
    reader.finish(into)
}

/// Reads an answer that comes in events.
#[derive(Debug, Default)]
pub(super) struct Reader {
    ending: Ending,
    usage: UsageWire,
    /// The blocks that are not over yet, by their place.
    open: Vec<(i64, Block)>,
}

/// A block under way.
#[derive(Debug)]
enum Block {
    /// A call, and arguments that came with its beginning: they count where no others come.
    Call(u32, Option<String>),
    /// Thoughts, which the provider wants back as they were.
    Thought(Map<String, Value>),
}

impl EventReader for Reader {
    fn event(&mut self, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        if is_empty(data) {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_slice(data).map_err(|error| unreadable(&error, data))?;
        let place = event.index.unwrap_or_default();
        if let Some(error) = event.error.filter(|error| !error.is_null()) {
            return Err(failure::of_object(&error));
        }
        if self.open.len() > MAX_PARTS {
            return Err(too_many_parts());
        }
        match event.kind.as_ref().map_or(name, |kind| &*kind.0) {
            "message_start" => self.used(event.message.and_then(|message| message.usage).as_ref(), into),
            "content_block_start" => self.begin(place, event.content_block.unwrap_or_default(), into),
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.more(place, delta, into);
                }
            }
            "content_block_stop" => self.close(place, into),
            "message_delta" => {
                self.used(event.usage.as_ref(), into);
                let said = event.delta.and_then(|delta| delta.stop_reason);
                self.ending.reason = said.map(|said| reason(&said.0)).or(self.ending.reason);
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
        for place in self.open.iter().map(|(place, _)| *place).collect::<Vec<_>>() {
            self.close(place, into);
        }
        self.ending.tell(into)
    }
}

impl Reader {
    fn used(&mut self, usage: Option<&UsageWire>, into: &mut Deltas) {
        if let Some(usage) = usage {
            self.usage.update(usage);
            into.push(ModelDelta::Usage(self.usage.told()));
        }
    }

    fn begin(&mut self, place: i64, block: Value, into: &mut Deltas) {
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
                let given = block.get("input").filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
                self.open.push((place, Block::Call(number, given.map(ToString::to_string))));
            }
            Some("thinking" | "redacted_thinking") => {
                if let Some(thought) = text("thinking") {
                    into.push(ModelDelta::Reasoning(thought));
                }
                self.open.push((place, Block::Thought(block)));
            }
            _ => {}
        }
    }

    fn more(&mut self, place: i64, delta: Delta<'_>, into: &mut Deltas) {
        if let Some(text) = delta.text {
            into.push(ModelDelta::Text(&text.0));
        }
        match self.open.iter_mut().rfind(|(at, _)| *at == place).map(|(_, block)| block) {
            Some(Block::Call(number, given)) => {
                if let Some(piece) = delta.partial_json.filter(|piece| !piece.0.is_empty()) {
                    into.push(ModelDelta::Call { index: Some(*number), id: None, name: None, arguments: &piece.0 });
                    *given = None;
                }
            }
            Some(Block::Thought(thought)) => {
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

    fn close(&mut self, place: i64, into: &mut Deltas) {
        let Some(at) = self.open.iter().position(|(at, _)| *at == place) else { return };
        match self.open.remove(at).1 {
            Block::Call(number, Some(given)) => {
                into.push(ModelDelta::Call { index: Some(number), id: None, name: None, arguments: &given });
            }
            Block::Call(_, None) => {}
            Block::Thought(thought) => into.push(ModelDelta::ProviderPart(&Value::Object(thought))),
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
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    index: Option<i64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    content_block: Option<Value>,
    message: Option<Reply>,
    #[serde(default, deserialize_with = "perhaps")]
    usage: Option<UsageWire>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default, deserialize_with = "parts")]
    content: Option<Vec<Value>>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "perhaps")]
    usage: Option<UsageWire>,
    error: Option<Value>,
}

/// What the answer cost so far. Later events leave out what they do not change.
#[derive(Debug, Default, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the wire's names")]
struct UsageWire {
    input_tokens: Option<Count>,
    cache_creation_input_tokens: Option<Count>,
    cache_read_input_tokens: Option<Count>,
    output_tokens: Option<Count>,
}

impl UsageWire {
    fn update(&mut self, newer: &Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens = newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
    }

    /// The wire counts what was read from the cache, and what was put into it, apart.
    fn told(&self) -> Usage {
        let parts = [self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens];
        Usage {
            input_tokens: parts.iter().flatten().fold(0u64, |sum, part| sum.saturating_add(part.0)),
            cached_tokens: self.cache_read_input_tokens.unwrap_or_default().0,
            output_tokens: self.output_tokens.unwrap_or_default().0,
            cost: None,
        }
    }
}
