//! Parses responses: whole ones, or chunks of the same form.

use helve_core::{Deltas, EndReason, ModelDelta, ModelError, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::ending::{Ending, invalid_event, is_empty};
use crate::failure;
use crate::list::list;
use crate::number::{Count, optional};
use crate::text::Text;
use crate::wire::{EventReader, invalid};

pub(super) fn whole(body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    let chunk: Chunk<'_> = serde_json::from_slice(body).map_err(|error| invalid("the response", &error, body))?;
    let mut reader = Reader { ending: Ending { over: true, ..Ending::default() } };
    if !reader.take(chunk, into)? {
        return Err(invalid("the response", &"it has no candidate", body));
    }
    reader.finish(into)
}

/// The parser for a streamed response.
#[derive(Debug, Default)]
pub(super) struct Reader {
    ending: Ending,
}

impl EventReader for Reader {
    fn event(&mut self, _: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        if is_empty(data) {
            return Ok(());
        }
        let chunk = serde_json::from_slice(data).map_err(|error| invalid_event(&error, data))?;
        self.take(chunk, into).map(|_| ())
    }

    fn finish(&mut self, into: &mut Deltas) -> Result<(), ModelError> {
        self.ending.finish(into)
    }
}

impl Reader {
    /// Parses a chunk. Returns whether the chunk has a candidate, which may be empty.
    fn take(&mut self, chunk: Chunk<'_>, into: &mut Deltas) -> Result<bool, ModelError> {
        failure::check(chunk.error.as_ref())?;
        if let Some(usage) = chunk.usage_metadata {
            into.push(ModelDelta::Usage(usage.into()));
        }
        let Some(candidate) = chunk.candidates.unwrap_or_default().into_iter().next() else {
            return chunk.prompt_feedback.and_then(Feedback::message).map_or(Ok(false), |message| Err(ModelError::Filter(message)));
        };
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            self.part(part, into);
        }
        if let Some(said) = candidate.finish_reason.filter(|said| !said.0.is_empty()) {
            self.ending.reason = Some(self.reason(&said.0, candidate.finish_message)?);
        }
        Ok(true)
    }

    fn part(&mut self, part: Part<'_>, into: &mut Deltas) {
        let thought = part.thought.unwrap_or_default();
        let mut place = json!(if thought { "thought" } else { "text" });
        if let Some(text) = part.text.filter(|text| !text.0.is_empty()) {
            into.push(if thought { ModelDelta::Reasoning(&text.0) } else { ModelDelta::Text(&text.0) });
        }
        if let Some(call) = part.function_call {
            let number = self.ending.call();
            place = json!(number);
            let filled = |text: Option<Text<'_>>| text.map(|text| text.0.into_owned()).filter(|text| !text.is_empty());
            let (id, name) = (filled(call.id), filled(call.name));
            let arguments = call.args.map_or("", RawValue::get);
            into.push(ModelDelta::Call { index: Some(number), id: id.as_deref(), name: name.as_deref(), arguments });
        }
        if let Some(signature) = part.thought_signature {
            into.push(ModelDelta::ProviderPart(&json!({"part": place, "signature": signature.0})));
        }
    }

    fn reason(&self, said: &str, message: Option<Text<'_>>) -> Result<EndReason, ModelError> {
        Ok(match said {
            "MAX_TOKENS" => EndReason::Length,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => EndReason::Filter,
            said if said.starts_with("IMAGE_") => EndReason::Filter,
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" if self.ending.calls == 0 => {
                let message = message.map(|message| message.0.into_owned()).unwrap_or_default();
                return Err(invalid("a call", &said, message.as_bytes()));
            }
            _ => EndReason::Stop,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Chunk<'a> {
    #[serde(default, deserialize_with = "list")]
    candidates: Option<Vec<Candidate<'a>>>,
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(default, deserialize_with = "optional")]
    usage_metadata: Option<UsageWire>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Candidate<'a> {
    content: Option<Content<'a>>,
    finish_reason: Option<Text<'a>>,
    finish_message: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Content<'a> {
    #[serde(default, deserialize_with = "list")]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Part<'a> {
    text: Option<Text<'a>>,
    thought: Option<bool>,
    thought_signature: Option<Text<'a>>,
    function_call: Option<Call<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Call<'a> {
    id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    args: Option<&'a RawValue>,
}

/// The provider's feedback on the prompt: whether and why it was blocked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Feedback<'a> {
    block_reason: Option<Text<'a>>,
    block_reason_message: Option<Text<'a>>,
}

impl Feedback<'_> {
    fn message(self) -> Option<String> {
        let reason = self.block_reason?.0;
        let message = self.block_reason_message.map(|message| format!(": {}", message.0)).unwrap_or_default();
        let text = format!("the prompt was blocked ({reason}){message}");
        Some(helve_core::printable::shorten(&helve_core::printable::escape_line(&text), 400))
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_field_names, reason = "the wire's names")]
struct UsageWire {
    prompt_token_count: Count,
    tool_use_prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
}

impl From<UsageWire> for Usage {
    fn from(wire: UsageWire) -> Self {
        Self {
            input_tokens: wire.prompt_token_count.0.saturating_add(wire.tool_use_prompt_token_count.0),
            cached_tokens: wire.cached_content_token_count.0,
            output_tokens: wire.candidates_token_count.0.saturating_add(wire.thoughts_token_count.0),
            cost: None,
        }
    }
}
