//! What is sent. A message is written once, as its blocks; turns are put together from them.

use helve_core::{CallId, Message, MessageBody, ModelRequest, ModelTools, Part, ToolChoice};
use serde_json::{Map, Value, json};

use super::NAME;
use crate::body::{Body, arguments, comma, value_of};
use crate::schema::closed;
use crate::wire::{result, string};

/// How long an answer may be where nobody says: the wire insists on a number.
const MAX_TOKENS: u64 = 8192;
/// What comes before this is remembered by the provider, and cheap to read again.
const REMEMBER: &[u8] = b",\"cache_control\":{\"type\":\"ephemeral\"}}";

pub(super) fn write(model: &str, request: &ModelRequest) -> Vec<u8> {
    let (options, mut body) = (&request.options, Body::new());
    body.field("model", model);
    // Thoughts count as part of the answer, and their share must be smaller than the whole.
    let thoughts = options.extra.get("thinking").and_then(|thinking| thinking.get("budget_tokens")).and_then(Value::as_u64);
    let most = options.max_tokens.map_or(MAX_TOKENS.saturating_add(thoughts.unwrap_or(0)), u64::from);
    body.field("max_tokens", &most);
    if request.stream {
        body.field("stream", &true);
    }
    write_system(request, &mut body);
    write_turns(request, body.open("messages"));
    if !request.tools.is_empty() {
        // They are sent also where none may be called: calls in the history must not be of unknown tools.
        request.tools.written().append(NAME, body.open("tools"), |bytes| write_tools(&request.tools, bytes));
        body.optional("tool_choice", choice(&request.tool_choice));
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
    let said = request.messages.iter().filter_map(|message| match message.body() {
        MessageBody::System { text } if !is_blank(text) => Some(text),
        _ => None,
    });
    let said: Vec<_> = said.collect();
    if said.is_empty() {
        return;
    }
    let into = body.open("system");
    into.push(b'[');
    for (place, text) in said.into_iter().enumerate() {
        comma(into, place);
        write_text(text, into);
    }
    remember(into);
    into.push(b']');
}

/// Neighbours of one role become one turn.
fn write_turns(request: &ModelRequest, into: &mut Vec<u8>) {
    let said: Vec<&Message> = request.messages.iter().map(AsRef::as_ref).filter(|message| is_said(message.body())).collect();
    let mut turns = said.chunk_by(|one, two| is_models(one) == is_models(two)).peekable();
    let mut first = true;
    into.push(b'[');
    while let Some(turn) = turns.next() {
        into.extend_from_slice(if std::mem::take(&mut first) { b"{\"role\":" } else { b",{\"role\":" });
        let models = turn.iter().any(|message| is_models(message));
        into.extend_from_slice(if models { b"\"assistant\",\"content\":[" } else { b"\"user\",\"content\":[" });
        // What came of calls must stand before anything else.
        let (results, rest): (Vec<&Message>, Vec<&Message>) = turn.iter().partition(|message| is_result(message));
        for (place, message) in results.into_iter().chain(rest).enumerate() {
            comma(into, place);
            message.written().append(NAME, into, |bytes| write_blocks(message.body(), bytes));
        }
        if turns.peek().is_none() && !models {
            remember(into);
        }
        into.extend_from_slice(b"]}");
    }
    into.push(b']');
}

fn is_models(message: &Message) -> bool {
    matches!(message.body(), MessageBody::Assistant { .. })
}

fn is_result(message: &Message) -> bool {
    matches!(message.body(), MessageBody::Tool { .. })
}

/// Whether anything of a message stands in a turn. Blocks without text are refused.
fn is_said(message: &MessageBody) -> bool {
    match message {
        MessageBody::User { parts } => parts.iter().any(is_shown),
        MessageBody::Assistant { text, calls, .. } => !is_blank(text) || !calls.is_empty(),
        MessageBody::Tool { .. } => true,
        _ => false,
    }
}

fn is_shown(part: &Part) -> bool {
    match part {
        Part::Text { text } => !is_blank(text),
        Part::Image { .. } => true,
        _ => false,
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn write_blocks(message: &MessageBody, into: &mut Vec<u8>) {
    match message {
        MessageBody::User { parts } => {
            for (place, part) in parts.iter().filter(|part| is_shown(part)).enumerate() {
                comma(into, place);
                write_part(part, into);
            }
        }
        MessageBody::Assistant { text, calls, kept, .. } => {
            let mut place = 0..;
            let mut next = |into: &mut Vec<u8>| comma(into, place.next().unwrap_or_default());
            // Signed thoughts come first, as they came.
            for thought in kept.iter().filter(|kept| &*kept.format == NAME).flat_map(|kept| &kept.parts) {
                next(into);
                value_of(into, thought);
            }
            if !is_blank(text) {
                next(into);
                write_text(text, into);
            }
            for call in calls {
                next(into);
                into.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
                string(into, &id(call.model_id.as_deref(), call.id));
                into.extend_from_slice(b",\"name\":");
                string(into, &call.tool);
                into.extend_from_slice(b",\"input\":");
                arguments(into, &call.arguments);
                into.push(b'}');
            }
        }
        MessageBody::Tool { call_id, model_id, text, success, .. } => {
            into.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
            string(into, &id(model_id.as_deref(), *call_id));
            // An error without words is refused.
            let said = if *success || !is_blank(text) { text } else { "The call failed." };
            if !is_blank(said) {
                into.extend_from_slice(b",\"content\":");
                result(into, said);
            }
            into.extend_from_slice(if *success { b"}" } else { b",\"is_error\":true}" });
        }
        _ => {}
    }
}

fn write_part(part: &Part, into: &mut Vec<u8>) {
    match part {
        Part::Text { text } => write_text(text, into),
        Part::Image { media_type, data } => {
            into.extend_from_slice(b"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":");
            string(into, media_type);
            into.extend_from_slice(b",\"data\":");
            string(into, data);
            into.extend_from_slice(b"}}");
        }
        _ => {}
    }
}

fn write_text(text: &str, into: &mut Vec<u8>) {
    into.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    string(into, text);
    into.push(b'}');
}

/// The id of a call. Those of other providers may have characters that this one refuses.
fn id(model_id: Option<&str>, id: CallId) -> String {
    let legal = |id: &&str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    model_id.filter(legal).map_or_else(|| id.to_string(), ToOwned::to_owned)
}

/// Says that all up to the object that was just written should be remembered.
fn remember(into: &mut Vec<u8>) {
    if into.pop_if(|last| *last == b'}').is_some() {
        into.extend_from_slice(REMEMBER);
    }
}

fn write_tools(tools: &ModelTools, into: &mut Vec<u8>) {
    into.push(b'[');
    for (place, tool) in tools.iter().enumerate() {
        comma(into, place);
        into.extend_from_slice(b"{\"name\":");
        string(into, &tool.name);
        into.extend_from_slice(b",\"description\":");
        string(into, &tool.description);
        into.extend_from_slice(b",\"input_schema\":");
        into.extend_from_slice(tool.parameters.text().as_bytes());
        into.push(b'}');
    }
    remember(into);
    into.push(b']');
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"type": "none"})),
        ToolChoice::Required => Some(json!({"type": "any"})),
        ToolChoice::Specific(name) => Some(json!({"type": "tool", "name": name})),
    }
}
