//! What is read, whole or in events: items of text, thoughts and calls.

use helve_core::{Deltas, EndReason, ModelDelta, ModelError, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::ending::{Ending, is_empty, unreadable};
use crate::failure;
use crate::number::{Count, money, perhaps};
use crate::text::Text;
use crate::wire::{EventReader, MAX_PARTS, nonsense, parts, too_many_parts};

pub(super) fn whole(body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    let mut reader = Reader::default();
    if !reader.reply(body, into)? {
        return Err(nonsense("the answer", &"it has no `output`", body));
    }
    reader.finish(into)
}

/// Reads an answer that comes in events.
#[derive(Debug, Default)]
pub(super) struct Reader {
    ending: Ending,
    /// The items so far.
    items: Vec<Item>,
    /// Whether words were said.
    spoke: bool,
    thought: bool,
}

/// An item of the answer.
#[derive(Debug)]
struct Item {
    place: i64,
    /// Which call it is, if it is one.
    call: Option<u32>,
    /// Whether its text or its arguments came in pieces.
    told: bool,
}

impl EventReader for Reader {
    fn event(&mut self, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        if is_empty(data) {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_slice(data).map_err(|error| unreadable(&error, data))?;
        let (place, delta) = (event.output_index.unwrap_or_default(), event.delta.unwrap_or_default().0);
        if self.items.len() > MAX_PARTS {
            return Err(too_many_parts());
        }
        match event.kind.as_ref().map_or(name, |kind| &*kind.0) {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.item(place).told = true;
                self.say(&delta, into);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.item(place).told = true;
                self.think(&delta, into);
            }
            // A summary has parts, each a paragraph.
            "response.reasoning_summary_part.added" if self.thought => into.push(ModelDelta::Reasoning("\n\n")),
            "response.function_call_arguments.delta" => {
                let item = self.item(place);
                item.told |= !delta.is_empty();
                if let (Some(number), false) = (item.call, delta.is_empty()) {
                    into.push(ModelDelta::Call { index: Some(number), id: None, name: None, arguments: &delta });
                }
            }
            "response.output_item.added" => self.begin(place, &event.item.unwrap_or_default(), into),
            "response.output_item.done" => self.end(place, &event.item.unwrap_or_default(), into),
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                self.reply(event.response.map_or(data, |response| response.get().as_bytes()), into)?;
            }
            "error" => return Err(failure::of_object(&serde_json::from_slice(data).unwrap_or_default())),
            _ => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.ending.over
    }

    fn finish(&mut self, into: &mut Deltas) -> Result<(), ModelError> {
        self.ending.tell(into)
    }
}

impl Reader {
    /// Takes a whole answer. What came in pieces before is not told again. Gives whether there is something in it.
    fn reply(&mut self, body: &[u8], into: &mut Deltas) -> Result<bool, ModelError> {
        let reply: Reply = serde_json::from_slice(body).map_err(|error| nonsense("the answer", &error, body))?;
        if let Some(error) = reply.error.filter(|error| !error.is_null()) {
            return Err(failure::of_object(&error));
        }
        let has_output = reply.output.is_some();
        if self.items.is_empty() {
            for (place, item) in (0..).zip(reply.output.unwrap_or_default()) {
                self.end(place, &item, into);
            }
        }
        if let Some(usage) = reply.usage {
            into.push(ModelDelta::Usage(usage.into()));
        }
        let why = reply.incomplete_details.and_then(|details| details.reason);
        self.ending.reason = match (reply.status.as_deref(), why.as_deref()) {
            (Some("failed" | "cancelled"), _) => return Err(nonsense("the answer", &"it failed without a reason", body)),
            (Some("incomplete"), Some("content_filter")) => Some(EndReason::Filter),
            (Some("incomplete"), _) => Some(EndReason::Length),
            // It is still being made, elsewhere.
            (Some("queued" | "in_progress"), _) => None,
            _ => Some(EndReason::Stop),
        };
        Ok(has_output)
    }

    fn item(&mut self, place: i64) -> &mut Item {
        let known = self.items.iter().rposition(|item| item.place == place);
        let at = known.unwrap_or_else(|| {
            self.items.push(Item { place, call: None, told: false });
            self.items.len() - 1
        });
        &mut self.items[at]
    }

    fn begin(&mut self, place: i64, item: &Value, into: &mut Deltas) {
        let text = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let is_call = text("type") == Some("function_call");
        if self.item(place).call.is_none() && is_call {
            let number = self.ending.call();
            self.item(place).call = Some(number);
            into.push(ModelDelta::Call { index: Some(number), id: text("call_id").or(text("id")), name: text("name"), arguments: "" });
        }
    }

    fn end(&mut self, place: i64, item: &Value, into: &mut Deltas) {
        self.begin(place, item, into);
        let &mut Item { told, call, .. } = self.item(place);
        match item.get("type").and_then(Value::as_str) {
            Some("message") if !told => texts(item.get("content")).for_each(|text| self.say(text, into)),
            Some("reasoning") => {
                if !told {
                    let summary = texts(item.get("summary")).chain(texts(item.get("content")));
                    for (place, text) in summary.enumerate() {
                        self.think(if place > 0 { "\n\n" } else { "" }, into);
                        self.think(text, into);
                    }
                }
                self.keep(item, into);
            }
            Some("function_call") if !told => {
                let arguments = item.get("arguments").map(|given| given.as_str().map_or_else(|| given.to_string(), ToOwned::to_owned));
                if let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) {
                    into.push(ModelDelta::Call { index: call, id: None, name: None, arguments: &arguments });
                }
            }
            _ => {}
        }
    }

    fn say(&mut self, text: &str, into: &mut Deltas) {
        if !text.is_empty() {
            self.spoke = true;
            into.push(ModelDelta::Text(text));
        }
    }

    fn think(&mut self, text: &str, into: &mut Deltas) {
        if !text.is_empty() {
            self.thought = true;
            into.push(ModelDelta::Reasoning(text));
        }
    }

    /// Keeps thoughts with the place before which they stand. Only what the provider takes back is kept, and nothing of
    /// what it has forgotten itself: an id alone says nothing to it.
    fn keep(&self, item: &Value, into: &mut Deltas) {
        let is_there = |name: &str| item.get(name).is_some_and(|value| !value.is_null() && *value != json!([]));
        if !is_there("encrypted_content") && !is_there("content") {
            return;
        }
        let mut kept = json!({"type": "reasoning", "summary": []});
        for name in ["id", "summary", "content", "encrypted_content"] {
            if is_there(name) {
                kept[name] = item[name].clone();
            }
        }
        let before = if self.spoke || self.ending.calls > 0 { self.ending.calls + 1 } else { 0 };
        into.push(ModelDelta::ProviderPart(&json!({"before": before, "item": kept})));
    }
}

/// The texts in a list of parts.
fn texts(parts: Option<&Value>) -> impl Iterator<Item = &str> {
    let parts = parts.and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(|part| part.get("text").or(part.get("refusal"))?.as_str())
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    output_index: Option<i64>,
    #[serde(borrow)]
    delta: Option<Text<'a>>,
    item: Option<Value>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Reply {
    status: Option<String>,
    #[serde(default, deserialize_with = "parts")]
    output: Option<Vec<Value>>,
    #[serde(default, deserialize_with = "perhaps")]
    usage: Option<UsageWire>,
    incomplete_details: Option<Details>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Details {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct UsageWire {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default, deserialize_with = "perhaps")]
    input_tokens_details: Option<Cached>,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default, deserialize_with = "money")]
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct Cached {
    cached_tokens: Option<Count>,
}

impl From<UsageWire> for Usage {
    fn from(wire: UsageWire) -> Self {
        let cached_tokens = wire.input_tokens_details.and_then(|details| details.cached_tokens).unwrap_or_default();
        Self { input_tokens: wire.input_tokens.0, cached_tokens: cached_tokens.0, output_tokens: wire.output_tokens.0, cost: wire.cost }
    }
}
