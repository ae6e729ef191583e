//! Converts results of `tools/call` to outputs, and outputs to results. Content blocks become text for the model and data for programs.

use std::borrow::Cow;

use helve_core::{ErrorKind, Output, ToolError, printable};
use helve_mcp_wire::ToolResult;
use serde_json::{Map, Value, json};

/// The field of an output's metadata or an error's details that keeps content blocks, if they are more than one plain text.
const CONTENT: &str = "content";

/// Converts the result of `tools/call` to an output, or to an error if the tool failed or the result is invalid.
pub(crate) fn read(result: Value) -> Result<Output, ToolError> {
    let wrong = |what| ToolError::new(ErrorKind::InvalidOutput, format!("the server's result {what}"));
    let ToolResult { content, structured, is_error, .. } = ToolResult::read(result).map_err(wrong)?;
    let text = content.iter().map(words).collect::<Vec<_>>().join("\n");
    let plain = content.iter().all(is_plain_text) && content.len() < 2;
    if is_error {
        let message = if text.trim().is_empty() { "the tool gives no reason".to_owned() } else { text };
        let error = ToolError::failed(message);
        return Err(if plain { error } else { error.with(CONTENT, Value::Array(content)) });
    }
    let output = if content.is_empty() { Output::data(structured) } else { Output::text(text).with_data(structured) };
    Ok(if plain { output } else { output.with_metadata(CONTENT, Value::Array(content)) })
}

fn is_plain_text(block: &Value) -> bool {
    block.as_object().is_some_and(|block| block.len() == 2) && block["type"] == "text" && block["text"].is_string()
}

/// Returns the text of a content block for the model.
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
        other => format!("[content of unknown type `{}`]", printable::escape_line(&printable::shorten(other, 40))),
    })
}

fn text_of(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Converts an output or an error to the result of `tools/call`.
#[must_use]
pub fn write(result: Result<Output, ToolError>) -> Value {
    let blocks = |fields: &Map<String, Value>, text: &str| match fields.get(CONTENT) {
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => vec![json!({"type": "text", "text": text})],
    };
    let result = match result {
        Ok(output) => ToolResult { content: blocks(&output.metadata, &output.text), structured: output.data, ..ToolResult::default() },
        Err(error) => {
            // For `failed`, `isError` says enough. The text of other kinds also says what to do.
            let text = if error.kind() == ErrorKind::Failed { error.message().to_owned() } else { error.for_model() };
            ToolResult { content: blocks(error.details(), &text), is_error: true, ..ToolResult::default() }
        }
    };
    result.into_value()
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
        assert_eq!(write(Ok(output)), json!({"content": blocks, "structuredContent": {"a": 1}}));
    }

    #[test]
    fn plain_text_needs_nothing_beside() {
        let output = read(json!({"content": [{"type": "text", "text": "hi"}]})).expect("a result");
        assert!(output.metadata.is_empty());
        assert_eq!(write(Ok(output)), json!({"content": [{"type": "text", "text": "hi"}]}));
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
