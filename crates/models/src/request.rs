//! Code that all wire formats share for serialising requests: the body, the list of tools, and the check for empty messages.

use helve_core::{CallId, MessageBody, ModelTools, Part, ToolChoice};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::json::WriteJson;

/// Fields that the user's provider-specific options cannot set, even if Helve does not send them.
const RESERVED: [&str; 6] = ["model", "messages", "tools", "stream", "input", "contents"];

/// The body of a request: a JSON object that is written field by field, without duplicate names.
pub(crate) struct Body {
    bytes: Vec<u8>,
    names: Vec<&'static str>,
}

impl Body {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::with_capacity(4096), names: Vec::with_capacity(16) }
    }

    /// Starts a field and returns the buffer, to which the caller must append the value.
    pub(crate) fn open(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.names.push(name);
        self.name(name);
        &mut self.bytes
    }

    /// Writes a field.
    pub(crate) fn field(&mut self, name: &'static str, value: &(impl Serialize + ?Sized)) {
        self.open(name).value(value);
    }

    /// Writes a field, unless `value` is `None`.
    pub(crate) fn optional(&mut self, name: &'static str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.field(name, &value);
        }
    }

    /// Writes an object field that merges Helve's values (`own`) with the user's (in `extra`), unless it is empty. Helve's values win.
    pub(crate) fn merged(&mut self, name: &'static str, own: Map<String, Value>, extra: &Map<String, Value>) {
        let mut whole = extra.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        whole.extend(own);
        if !whole.is_empty() {
            self.field(name, &whole);
        }
    }

    /// Adds the user's provider-specific fields and returns the body. These fields cannot replace fields that Helve wrote.
    pub(crate) fn finish(mut self, extra: &Map<String, Value>) -> Vec<u8> {
        for (name, value) in extra {
            if !RESERVED.contains(&name.as_str()) && !self.names.contains(&name.as_str()) {
                self.name(name);
                self.bytes.value(value);
            }
        }
        self.bytes.raw(if self.bytes.is_empty() { "{}" } else { "}" });
        self.bytes
    }

    fn name(&mut self, name: &str) {
        self.bytes.string(if self.bytes.is_empty() { "{" } else { "," }, name);
        self.bytes.push(b':');
    }
}

/// How a wire format writes a tool.
pub(crate) struct ToolFormat {
    /// The JSON before the tool's name.
    pub(crate) open: &'static str,
    /// The JSON before the schema of the parameters.
    pub(crate) parameters: &'static str,
    /// The JSON after the parameters.
    pub(crate) close: &'static str,
    /// Whether to omit the schema of a tool without parameters.
    pub(crate) omit_empty: bool,
}

/// How a wire format writes the field `tool_choice`.
pub(crate) struct ChoiceFormat {
    /// The JSON for [`ToolChoice::None`].
    pub(crate) none: &'static str,
    /// The JSON for [`ToolChoice::Required`].
    pub(crate) required: &'static str,
    /// The JSON before and after the name in [`ToolChoice::Specific`].
    pub(crate) specific: [&'static str; 2],
}

impl ChoiceFormat {
    /// Writes the field `tool_choice`, unless the choice is [`ToolChoice::Auto`].
    pub(crate) fn write(&self, choice: &ToolChoice, body: &mut Body) {
        match choice {
            ToolChoice::Auto => {}
            ToolChoice::None => body.open("tool_choice").raw(self.none),
            ToolChoice::Required => body.open("tool_choice").raw(self.required),
            ToolChoice::Specific(name) => {
                let into = body.open("tool_choice");
                into.string(self.specific[0], name);
                into.raw(self.specific[1]);
            }
        }
    }
}

impl ToolFormat {
    /// Writes the tools as items of a list, without the brackets.
    pub(crate) fn write(&self, tools: &ModelTools, into: &mut Vec<u8>) {
        for tool in tools.iter() {
            into.comma();
            into.string(self.open, &tool.name);
            into.string(r#","description":"#, &tool.description);
            let is_empty = || tool.parameters.value().get("properties").and_then(Value::as_object).is_some_and(Map::is_empty);
            if !(self.omit_empty && is_empty()) {
                into.raw(self.parameters);
                into.raw(tool.parameters.text());
            }
            into.raw(self.close);
        }
    }
}

/// Writes a message with a role and a text, without the closing brace.
pub(crate) fn write_role(role: &str, text: &str, into: &mut Vec<u8>) {
    into.reserve(text.len() + 64);
    into.raw(r#"{"role":""#);
    into.raw(role);
    into.string(r#"","content":"#, text);
}

/// Returns whether a message has content to send. Providers reject turns without content.
pub(crate) fn has_content(message: &MessageBody, is_empty: fn(&str) -> bool) -> bool {
    match message {
        MessageBody::User { parts } => parts.iter().any(|part| is_shown(part, is_empty)),
        MessageBody::Assistant { text, calls, .. } => !is_empty(text) || !calls.is_empty(),
        MessageBody::Tool { .. } => true,
        _ => false,
    }
}

/// Returns whether a part of a user message has content.
pub(crate) fn is_shown(part: &Part, is_empty: fn(&str) -> bool) -> bool {
    match part {
        Part::Text { text } => !is_empty(text),
        Part::Image { .. } => true,
        _ => false,
    }
}

/// Returns the id of a call: the model's id if this provider accepts it, else Helve's. Ids from other providers may be too long or
/// contain characters that this provider rejects.
pub(crate) fn call_id(model_id: Option<&str>, id: CallId, is_valid: fn(&str) -> bool) -> String {
    model_id.filter(|id| is_valid(id)).map_or_else(|| id.to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_name_stands_twice_and_nothing_of_helve_is_replaced() {
        let extra = json!({"model": "x", "top_k": 3, "temperature": 2, "text": {"verbosity": "low", "format": "user"}, "stream": true});
        let Value::Object(extra) = extra else { unreachable!() };
        let mut body = Body::new();
        body.field("model", "m");
        body.optional("temperature", Some(1));
        body.optional("top_p", None::<f64>);
        body.merged("text", Map::from_iter([("format".to_owned(), json!("own"))]), &extra);
        body.merged("toolConfig", Map::new(), &extra);
        let text = String::from_utf8(body.finish(&extra)).expect("text");
        assert_eq!(text, r#"{"model":"m","temperature":1,"text":{"verbosity":"low","format":"own"},"top_k":3}"#);
        assert_eq!(Body::new().finish(&Map::new()), b"{}");
    }
}
