//! What all wires share when they write a request: the body, the list of tools, and what counts as empty.

use helve_core::{CallId, MessageBody, ModelTools, Part, ToolChoice};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::json::WriteJson;

/// Fields that only Helve sets, even where it leaves them out.
const RESERVED: [&str; 6] = ["model", "messages", "tools", "stream", "input", "contents"];

/// The body of a request: a JSON object, written field by field, in which no name occurs twice.
pub(crate) struct Body {
    bytes: Vec<u8>,
    names: Vec<&'static str>,
}

impl Body {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::with_capacity(4096), names: Vec::with_capacity(16) }
    }

    /// Starts a field. What is appended next is its value.
    pub(crate) fn open(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.names.push(name);
        self.name(name);
        &mut self.bytes
    }

    pub(crate) fn field(&mut self, name: &'static str, value: &(impl Serialize + ?Sized)) {
        self.open(name).value(value);
    }

    /// Writes a field if it has a value.
    pub(crate) fn optional(&mut self, name: &'static str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.field(name, &value);
        }
    }

    /// Writes an object with fields of Helve and of the user, unless it is empty. Helve's fields win.
    pub(crate) fn merged(&mut self, name: &'static str, own: Map<String, Value>, extra: &Map<String, Value>) {
        let mut whole = extra.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        whole.extend(own);
        if !whole.is_empty() {
            self.field(name, &whole);
        }
    }

    /// Adds the user's provider-specific fields and returns the body. They cannot replace what Helve wrote.
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

/// How a wire writes a tool: the JSON before its name, before its parameters, and after them.
pub(crate) struct ToolFormat {
    pub(crate) open: &'static str,
    pub(crate) parameters: &'static str,
    pub(crate) close: &'static str,
    /// Whether a tool that takes nothing has no parameters at all.
    pub(crate) omit_empty: bool,
}

/// How a wire writes the choice of tools: no call, any call, and the JSON around the name of one tool.
pub(crate) struct ChoiceFormat {
    pub(crate) none: &'static str,
    pub(crate) required: &'static str,
    pub(crate) specific: [&'static str; 2],
}

impl ChoiceFormat {
    /// Writes the field `tool_choice`, unless the model may choose.
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
    /// Writes tools as members of a list.
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

/// Starts a message that is one text: the object is still open.
pub(crate) fn write_role(role: &str, text: &str, into: &mut Vec<u8>) {
    into.reserve(text.len() + 64);
    into.raw(r#"{"role":""#);
    into.raw(role);
    into.string(r#"","content":"#, text);
}

/// Whether a message has content for the provider. Providers refuse turns without any.
pub(crate) fn has_content(message: &MessageBody, is_empty: fn(&str) -> bool) -> bool {
    match message {
        MessageBody::User { parts } => parts.iter().any(|part| is_shown(part, is_empty)),
        MessageBody::Assistant { text, calls, .. } => !is_empty(text) || !calls.is_empty(),
        MessageBody::Tool { .. } => true,
        _ => false,
    }
}

/// Whether a part of a user's message has content.
pub(crate) fn is_shown(part: &Part, is_empty: fn(&str) -> bool) -> bool {
    match part {
        Part::Text { text } => !is_empty(text),
        Part::Image { .. } => true,
        _ => false,
    }
}

/// The id of a call: the model's, if this provider accepts it. Ids of other providers may be too long or have other characters.
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
