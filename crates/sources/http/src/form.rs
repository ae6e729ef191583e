//! Encodes queries and forms, which have the same format.

use form_urlencoded::{Serializer, Target};
use serde_json::Value;

/// Appends the entries for a value: one for each item of a list, none for null. Writes an object as JSON.
pub(crate) fn append<T: Target>(entries: &mut Serializer<'_, T>, key: &str, value: &Value) {
    for text in texts(value) {
        entries.append_pair(key, &text);
    }
}

/// Returns a form-encoded body. Returns a string unchanged.
pub(crate) fn body(body: &Value) -> String {
    let mut entries = Serializer::new(String::new());
    match body {
        Value::String(text) => return text.clone(),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| append(&mut entries, key, value)),
        other => append(&mut entries, "value", other),
    }
    entries.finish()
}

/// Returns the text, form-encoded.
pub(crate) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(|item| if item.is_array() { vec![item.to_string()] } else { texts(item) }).collect(),
        other => vec![other.to_string()],
    }
}
