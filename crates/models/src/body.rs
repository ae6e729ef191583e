//! The body of a request: a JSON object, written field by field, in which no name stands twice.

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::wire::string;

/// What Helve alone decides, also where it leaves it out.
const BARRED: [&str; 6] = ["model", "messages", "tools", "stream", "input", "contents"];

/// A JSON object under way.
pub(crate) struct Body {
    bytes: Vec<u8>,
    names: Vec<&'static str>,
}

impl Body {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::with_capacity(4096), names: Vec::with_capacity(16) }
    }

    /// Begins a field. What is appended next is its value.
    pub(crate) fn open(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.names.push(name);
        self.name(name);
        &mut self.bytes
    }

    pub(crate) fn field(&mut self, name: &'static str, value: &(impl Serialize + ?Sized)) {
        value_of(self.open(name), value);
    }

    /// A field, where there is something to say.
    pub(crate) fn optional(&mut self, name: &'static str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.field(name, &value);
        }
    }

    /// An object with fields of Helve's and of the user's. Helve's stay; nothing is written where there are none.
    pub(crate) fn merged(&mut self, name: &'static str, own: Map<String, Value>, extra: &Map<String, Value>) {
        let mut whole = extra.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        whole.extend(own);
        if !whole.is_empty() {
            self.field(name, &whole);
        }
    }

    /// The whole, with the user's fields for one provider. They cannot replace what Helve wrote.
    pub(crate) fn finish(mut self, extra: &Map<String, Value>) -> Vec<u8> {
        for (name, value) in extra {
            if !BARRED.contains(&name.as_str()) && !self.names.contains(&name.as_str()) {
                self.name(name);
                value_of(&mut self.bytes, value);
            }
        }
        self.bytes.extend_from_slice(if self.bytes.is_empty() { b"{}" } else { b"}" });
        self.bytes
    }

    fn name(&mut self, name: &str) {
        self.bytes.push(if self.bytes.is_empty() { b'{' } else { b',' });
        string(&mut self.bytes, name);
        self.bytes.push(b':');
    }
}

/// Appends a value as JSON.
pub(crate) fn value_of(into: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Writing plain values to memory cannot fail.
    let _ = serde_json::to_writer(into, value);
}

/// Appends the arguments of a call where the wire wants an object. They are one, but a body that is no JSON would be
/// refused as a whole, so nobody is trusted.
pub(crate) fn arguments(into: &mut Vec<u8>, text: &str) {
    let text = text.trim();
    if text.is_empty() {
        into.extend_from_slice(b"{}");
    } else if text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        into.extend_from_slice(text.as_bytes());
    } else {
        value_of(into, &json!({"arguments": text}));
    }
}

/// Appends `,` unless it is the first.
pub(crate) fn comma(into: &mut Vec<u8>, place: usize) {
    if place > 0 {
        into.push(b',');
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn arguments_are_always_an_object() {
        let written = |text: &str| {
            let mut bytes = Vec::new();
            arguments(&mut bytes, text);
            String::from_utf8(bytes).expect("text")
        };
        assert_eq!(written(" {\"a\": 1} "), "{\"a\": 1}");
        assert_eq!(written(""), "{}");
        assert_eq!(written("{\"a\": "), r#"{"arguments":"{\"a\":"}"#);
        assert_eq!(written("[1]"), r#"{"arguments":"[1]"}"#);
    }
}
