//! Serialises requests. The JSON of a message is cached, as a list of content blocks; turns are assembled from these.

use helve_core::{Message, MessageBody, ModelRequest, Part};
use serde_json::{Map, Value, json};

use super::NAME;
use crate::json::WriteJson;
use crate::request::{Body, ChoiceFormat, ToolFormat, call_id, has_content, is_shown};
use crate::schema::closed;

/// The default for `max_tokens`, which this API requires.
const MAX_TOKENS: u64 = 8192;
/// The end of a block that asks the provider to cache the request up to and including the block.
const CACHE: &str = r#","cache_control":{"type":"ephemeral"}}"#;

const TOOLS: ToolFormat = ToolFormat { open: r#"{"name":"#, parameters: r#","input_schema":"#, close: "}", omit_empty: false };

const CHOICE: ChoiceFormat =
    ChoiceFormat { none: r#"{"type":"none"}"#, required: r#"{"type":"any"}"#, specific: [r#"{"type":"tool","name":"#, "}"] };

pub(super) fn write(model: &str, request: &ModelRequest) -> Vec<u8> {
    let (options, mut body) = (&request.options, Body::new());
    body.field("model", model);
    // The reasoning budget counts towards `max_tokens` and must be smaller.
    let reasoning = options.extra.get("thinking").and_then(|thinking| thinking.get("budget_tokens")).and_then(Value::as_u64);
    let max_tokens = options.max_tokens.map_or(MAX_TOKENS.saturating_add(reasoning.unwrap_or(0)), u64::from);
    body.field("max_tokens", &max_tokens);
    if request.stream {
        body.field("stream", &true);
    }
    write_system(request, &mut body);
    write_turns(request, body.open("messages"));
    if !request.tools.is_empty() {
        // Tools are sent even if the model may call none, because the provider must know the tools of the calls in the history.
        request.tools.written().append(NAME, body.open("tools"), |bytes| {
            bytes.raw("[");
            TOOLS.write(&request.tools, bytes);
            cache(bytes);
            bytes.raw("]");
        });
        CHOICE.write(&request.tool_choice, &mut body);
    }
    let output = request.output.iter().map(|schema| {
        let format = json!({"type": "json_schema", "schema": closed(schema.value())});
        ("format".to_owned(), format)
    });
    body.merged("output_config", output.collect::<Map<_, _>>(), &options.extra);
    body.optional("temperature", options.temperature);
    body.optional("top_p", options.top_p);
    body.optional("stop_sequences", Some(&options.stop).filter(|stop| !stop.is_empty()));
    body.finish(&options.extra)
}

fn write_system(request: &ModelRequest, body: &mut Body) {
    let texts = request.messages.iter().filter_map(|message| match message.body() {
        MessageBody::System { text } if !is_blank(text) => Some(text),
        _ => None,
    });
    let mut texts = texts.peekable();
    if texts.peek().is_none() {
        return;
    }
    let into = body.open("system");
    into.raw("[");
    for text in texts {
        into.comma();
        write_text(text, into);
    }
    cache(into);
    into.raw("]");
}

/// Writes the messages. Adjacent messages with the same role become one turn.
fn write_turns(request: &ModelRequest, into: &mut Vec<u8>) {
    let messages = request.messages.iter().map(AsRef::as_ref);
    let messages: Vec<&Message> = messages.filter(|message| has_content(message.body(), is_blank)).collect();
    let mut turns = messages.chunk_by(|one, two| is_models(one) == is_models(two)).peekable();
    into.raw("[");
    while let Some(turn) = turns.next() {
        into.comma();
        let models = turn.iter().any(|message| is_models(message));
        into.raw(if models { r#"{"role":"assistant","content":["# } else { r#"{"role":"user","content":["# });
        // The API requires the results of calls before other content.
        let (results, rest): (Vec<&Message>, Vec<&Message>) = turn.iter().partition(|message| is_result(message));
        for message in results.into_iter().chain(rest) {
            into.comma();
            message.written().append(NAME, into, |bytes| write_blocks(message.body(), bytes));
        }
        if turns.peek().is_none() && !models {
            cache(into);
        }
        into.raw("]}");
    }
    into.raw("]");
}

fn is_models(message: &Message) -> bool {
    matches!(message.body(), MessageBody::Assistant { .. })
}

fn is_result(message: &Message) -> bool {
    matches!(message.body(), MessageBody::Tool { .. })
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn write_blocks(message: &MessageBody, into: &mut Vec<u8>) {
    match message {
        MessageBody::User { parts } => {
            for part in parts.iter().filter(|part| is_shown(part, is_blank)) {
                into.comma();
                write_part(part, into);
            }
        }
        MessageBody::Assistant { text, calls, kept, .. } => {
            // The API requires signed reasoning first, and unchanged.
            for block in kept.iter().filter(|kept| &*kept.format == NAME).flat_map(|kept| &kept.parts) {
                into.comma();
                into.value(block);
            }
            if !is_blank(text) {
                into.comma();
                write_text(text, into);
            }
            for call in calls {
                into.comma();
                into.string(r#"{"type":"tool_use","id":"#, &call_id(call.model_id.as_deref(), call.id, is_id));
                into.string(r#","name":"#, &call.tool);
                into.raw(r#","input":"#);
                into.arguments(&call.arguments);
                into.raw("}");
            }
        }
        MessageBody::Tool { call_id: id, model_id, text, success, .. } => {
            into.string(r#"{"type":"tool_result","tool_use_id":"#, &call_id(model_id.as_deref(), *id, is_id));
            // The API rejects an error without text.
            let text = if *success || !is_blank(text) { text } else { "The call failed." };
            if !is_blank(text) {
                into.untrusted(r#","content":"#, text);
            }
            into.raw(if *success { "}" } else { r#","is_error":true}"# });
        }
        _ => {}
    }
}

fn write_part(part: &Part, into: &mut Vec<u8>) {
    match part {
        Part::Text { text } => write_text(text, into),
        Part::Image { media_type, data } => {
            into.string(r#"{"type":"image","source":{"type":"base64","media_type":"#, media_type);
            into.string(r#","data":"#, data);
            into.raw("}}");
        }
        _ => {}
    }
}

fn write_text(text: &str, into: &mut Vec<u8>) {
    into.string(r#"{"type":"text","text":"#, text);
    into.raw("}");
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Asks the provider to cache the request up to and including the object that was just written.
fn cache(into: &mut Vec<u8>) {
    if into.pop_if(|last| *last == b'}').is_some() {
        into.raw(CACHE);
    }
}
