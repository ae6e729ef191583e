//! What a tool of a server gives back: blocks of content become text for the model and data for programs, and the other way around.

use std::borrow::Cow;

use helve_core::{ErrorKind, Output, ToolError, printable};
use serde_json::{Value, json};

/// Where blocks that are more than text are kept beside a result.
const CONTENT: &str = "content";

/// The result of `tools/call`.
pub(crate) fn read(mut result: Value) -> Result<Output, ToolError> {
    let wrong = |what: &str| Err(ToolError::new(ErrorKind::InvalidOutput, format!("the server's result {what}")));
    if !result.is_object() {
        return wrong("is no object");
    }
    let blocks = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        None | Some(Value::Null) => Vec::new(),
        Some(_) => return wrong("has a `content` that is no list"),
    };
    let text = blocks.iter().map(words).collect::<Vec<_>>().join("\n");
    let plain = blocks.iter().all(is_plain_text) && blocks.len() < 2;
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let message = if text.trim().is_empty() { "the tool gives no reason".to_owned() } else { text };
        let error = ToolError::failed(message);
        return Err(if plain { error } else { error.with(CONTENT, Value::Array(blocks)) });
    }
    let data = result.get_mut("structuredContent").map(Value::take).unwrap_or_default();
    let mut output = if blocks.is_empty() { Output::data(data) } else { Output::text(text).with_data(data) };
    if !plain {
        output = output.with_metadata(CONTENT, Value::Array(blocks));
    }
    Ok(output)
}

fn is_plain_text(block: &Value) -> bool {
    block.as_object().is_some_and(|block| block.len() == 2) && block["type"] == "text" && block["text"].is_string()
}

/// What a model reads of a block.
fn words(block: &Value) -> Cow<'_, str> {
    let text = |name: &str| text_of(block.get(name));
    let inside = |name: &str| text_of(block.get("resource").and_then(|resource| resource.get(name)));
    let bytes = |data: &str| data.len() / 4 * 3;
    Cow::Owned(match text("type") {
        "text" => return Cow::Borrowed(text("text")),
        kind @ ("image" | "audio") => format!("[{kind} {}, {} bytes]", text("mimeType"), bytes(text("data"))),
        "resource_link" => format!("[resource {}: {}]", text("name"), text("uri")),
        "resource" if block["resource"].get("text").is_some() => format!("[resource {}]\n{}", inside("uri"), inside("text")),
        "resource" => format!("[resource {}, {}, {} bytes]", inside("uri"), inside("mimeType"), bytes(inside("blob"))),
        other => format!("[content of the kind `{}`, which is not known here]", printable::escape_line(&printable::shorten(other, 40))),
    })
}

fn text_of(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

/// A result as `tools/call` gives it.
#[must_use]
pub fn write(result: &Result<Output, ToolError>) -> Value {
    let block = |text: &str| json!([{"type": "text", "text": text}]);
    match result {
        Ok(output) => {
            let content = output.metadata.get(CONTENT).filter(|blocks| blocks.is_array()).cloned();
            let mut written = json!({"content": content.unwrap_or_else(|| block(&output.text))});
            if !output.data.is_null() {
                written["structuredContent"] = output.data.clone();
            }
            written
        }
        Err(error) => {
            let content = error.details().get(CONTENT).filter(|blocks| blocks.is_array()).cloned();
            // That it failed is said beside; other kinds say what to do about them.
            let text = if error.kind() == ErrorKind::Failed { error.message().to_owned() } else { error.for_model() };
            json!({"content": content.unwrap_or_else(|| block(&text)), "isError": true})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_words_and_come_back_as_they_were() {
        let blocks = json!([
            {"type": "text", "text": "hello"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
            {"type": "resource_link", "uri": "a://c", "name": "c"},
            {"type": "smell", "data": "x"},
        ]);
        let output = read(json!({"content": blocks, "structuredContent": {"a": 1}})).expect("a result");
        assert!(
            output.text.starts_with("hello\n[image image/png, 3 bytes]\n[resource a://b]\ninside\n[resource c: a://c]"),
            "{}",
            output.text
        );
        assert_eq!(output.data, json!({"a": 1}));
        assert_eq!(write(&Ok(output)), json!({"content": blocks, "structuredContent": {"a": 1}}));
    }

    #[test]
    fn plain_text_needs_nothing_beside() {
        let output = read(json!({"content": [{"type": "text", "text": "hi"}]})).expect("a result");
        assert!(output.metadata.is_empty());
        assert_eq!(write(&Ok(output)), json!({"content": [{"type": "text", "text": "hi"}]}));
        let output = read(json!({"content": [], "structuredContent": {"a": 1}})).expect("a result");
        assert_eq!(output, Output::data(json!({"a": 1})));
    }

    #[test]
    fn a_failure_says_why() {
        let error = read(json!({"content": [{"type": "text", "text": "no disk"}], "isError": true})).expect_err("a failure");
        assert_eq!(error.message(), "no disk");
        assert_eq!(read(json!({"isError": true})).expect_err("a failure").message(), "the tool gives no reason");
    }
}
