//! Parses responses, whole or as events: items of text, reasoning and calls.

use helve_core::{Deltas, EndReason, ModelDelta, ModelError, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::ending::{Ending, invalid_event, is_empty};
use crate::failure;
use crate::list::{MAX_PARTS, list};
use crate::number::{Count, InputDetails, cost, optional};
use crate::text::Text;
use crate::wire::{EventReader, invalid, too_many_parts};

pub(super) fn whole(body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    let mut reader = Reader::default();
    if !reader.response(body, into)? {
        return Err(invalid("the response", &"it has no `output`", body));
    }
    reader.finish(into)
}

/// The parser for a streamed response.
#[derive(Debug, Default)]
pub(super) struct Reader {
    ending: Ending,
    /// The items of the response so far.
    items: Vec<Item>,
    /// Whether the response contains text so far.
    has_text: bool,
    /// Whether the response contains reasoning so far.
    has_reasoning: bool,
}

/// An item of the response.
#[derive(Debug)]
struct Item {
    index: i64,
    /// The index of the call, if the item is a call.
    call: Option<u32>,
    /// Whether the text or the arguments of the item arrived as deltas.
    streamed: bool,
}

impl EventReader for Reader {
    fn event(&mut self, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        if is_empty(data) {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_slice(data).map_err(|error| invalid_event(&error, data))?;
        let (index, delta) = (event.output_index.unwrap_or_default(), event.delta.unwrap_or_default().0);
        if self.items.len() > MAX_PARTS {
            return Err(too_many_parts());
        }
        match event.kind.as_ref().map_or(name, |kind| &*kind.0) {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.item(index).streamed = true;
                self.text(&delta, into);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.item(index).streamed = true;
                self.reasoning(&delta, into);
            }
            // Each part of a summary is a paragraph.
            "response.reasoning_summary_part.added" if self.has_reasoning => into.push(ModelDelta::Reasoning("\n\n")),
            "response.function_call_arguments.delta" => {
                let item = self.item(index);
                item.streamed |= !delta.is_empty();
                if let (Some(number), false) = (item.call, delta.is_empty()) {
                    into.push(ModelDelta::Call { index: Some(number), id: None, name: None, arguments: &delta });
                }
            }
            "response.output_item.added" => self.begin(index, &event.item.unwrap_or_default(), into),
            "response.output_item.done" => self.end(index, &event.item.unwrap_or_default(), into),
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                self.response(event.response.map_or(data, |response| response.get().as_bytes()), into)?;
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
        self.ending.finish(into)
    }
}

impl Reader {
    /// Parses a whole response, and skips its items if they already arrived as events. Returns whether the response has an output.
    fn response(&mut self, body: &[u8], into: &mut Deltas) -> Result<bool, ModelError> {
        let response: Response = serde_json::from_slice(body).map_err(|error| invalid("the response", &error, body))?;
        failure::check(response.error.as_ref())?;
        let has_output = response.output.is_some();
        if self.items.is_empty() {
            for (index, item) in (0..).zip(response.output.unwrap_or_default()) {
                self.end(index, &item, into);
            }
        }
        if let Some(usage) = response.usage {
            into.push(ModelDelta::Usage(usage.into()));
        }
        let why = response.incomplete_details.and_then(|details| details.reason);
        self.ending.reason = match (response.status.as_deref(), why.as_deref()) {
            (Some("failed" | "cancelled"), _) => return Err(invalid("the response", &"it failed without a reason", body)),
            (Some("incomplete"), Some("content_filter")) => Some(EndReason::Filter),
            (Some("incomplete"), _) => Some(EndReason::Length),
            // The provider is still generating the response.
            (Some("queued" | "in_progress"), _) => None,
            _ => Some(EndReason::Stop),
        };
        Ok(has_output)
    }

    /// Returns the item with this index, and creates it if necessary.
    fn item(&mut self, index: i64) -> &mut Item {
        let known = self.items.iter().rposition(|item| item.index == index);
        let at = known.unwrap_or_else(|| {
            self.items.push(Item { index, call: None, streamed: false });
            self.items.len() - 1
        });
        &mut self.items[at]
    }

    /// Starts an item. For a call, appends its id and name.
    fn begin(&mut self, index: i64, item: &Value, into: &mut Deltas) {
        let text = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let is_call = text("type") == Some("function_call");
        if self.item(index).call.is_none() && is_call {
            let number = self.ending.call();
            self.item(index).call = Some(number);
            into.push(ModelDelta::Call { index: Some(number), id: text("call_id").or(text("id")), name: text("name"), arguments: "" });
        }
    }

    /// Ends an item. Appends its content unless that arrived as deltas.
    fn end(&mut self, index: i64, item: &Value, into: &mut Deltas) {
        self.begin(index, item, into);
        let &mut Item { streamed, call, .. } = self.item(index);
        match item.get("type").and_then(Value::as_str) {
            Some("message") if !streamed => texts(item.get("content")).for_each(|text| self.text(text, into)),
            Some("reasoning") => {
                if !streamed {
                    let summary = texts(item.get("summary")).chain(texts(item.get("content")));
                    for (number, text) in summary.enumerate() {
                        self.reasoning(if number > 0 { "\n\n" } else { "" }, into);
                        self.reasoning(text, into);
                    }
                }
                self.keep(item, into);
            }
            Some("function_call") if !streamed => {
                let arguments = item.get("arguments").map(|value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned));
                if let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) {
                    into.push(ModelDelta::Call { index: call, id: None, name: None, arguments: &arguments });
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, into: &mut Deltas) {
        if !text.is_empty() {
            self.has_text = true;
            into.push(ModelDelta::Text(text));
        }
    }

    fn reasoning(&mut self, text: &str, into: &mut Deltas) {
        if !text.is_empty() {
            self.has_reasoning = true;
            into.push(ModelDelta::Reasoning(text));
        }
    }

    /// Appends a delta with the fields of a reasoning item that the provider accepts back, and the position before which it belongs.
    /// Skips an item without content: the provider stores nothing, so it does not know the id.
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
        let before = if self.has_text || self.ending.calls > 0 { self.ending.calls + 1 } else { 0 };
        into.push(ModelDelta::ProviderPart(&json!({"before": before, "item": kept})));
    }
}

/// Returns the texts in a list of parts.
fn texts(parts: Option<&Value>) -> impl Iterator<Item = &str> {
    let parts = parts.and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(|part| part.get("text").or(part.get("refusal"))?.as_str())
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: Option<Text<'a>>,
    output_index: Option<i64>,
    delta: Option<Text<'a>>,
    item: Option<Value>,
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response {
    status: Option<String>,
    #[serde(default, deserialize_with = "list")]
    output: Option<Vec<Value>>,
    #[serde(default, deserialize_with = "optional")]
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
    #[serde(default, deserialize_with = "optional")]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default, deserialize_with = "cost")]
    cost: Option<f64>,
}

impl From<UsageWire> for Usage {
    fn from(wire: UsageWire) -> Self {
        let cached_tokens = wire.input_tokens_details.unwrap_or_default().cached_tokens;
        Self { input_tokens: wire.input_tokens.0, cached_tokens: cached_tokens.0, output_tokens: wire.output_tokens.0, cost: wire.cost }
    }
}
