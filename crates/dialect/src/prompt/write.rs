//! Writes calls in the two prompted formats, and the JSON and CDATA in them.

use std::fmt::Write;
use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value, json};

use super::PromptFormat;
use crate::xml::{CDATA, CDATA_END};

/// Returns the text of one call.
pub(super) fn call(form: PromptFormat, name: &str, arguments: &Map<String, Value>) -> String {
    match form {
        PromptFormat::Json => json(&json!({"tool_calls": [{"id": "call_1", "name": name, "parameters": arguments}]})),
        PromptFormat::Xml => {
            let mut text = format!("<tool_call>\n  <name>{name}</name>\n  <params>\n");
            for (key, value) in arguments {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "    <{key}>{}</{key}>", cdata(&plain(value)));
            }
            text.push_str("  </params>\n</tool_call>");
            text
        }
    }
}

/// Returns a value as the text of an element: a string unchanged, anything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => json(other),
    }
}

/// Returns the text as CDATA. Splits any `]]>` in the text, so that it does not end the CDATA.
pub(super) fn cdata(text: &str) -> String {
    format!("{CDATA}{}{CDATA_END}", text.replace(CDATA_END, "]]]]><![CDATA[>"))
}

/// Returns the text with escapes for an attribute value, without control characters.
pub(super) fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars().filter(|c| !c.is_control()) {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// Returns JSON on one line with spaces after commas and colons, as people and models write it.
pub(super) fn json(value: &Value) -> String {
    let mut out = Vec::new();
    match value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)) {
        Ok(()) => String::from_utf8(out).unwrap_or_else(|_| value.to_string()),
        Err(_) => value.to_string(),
    }
}

/// Writes a space after each comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_spaces_only_between_parts() {
        assert_eq!(json(&json!({"a": [1, "x,y:z"], "b": {}})), r#"{"a": [1, "x,y:z"], "b": {}}"#);
    }

    #[test]
    fn cdata_ends_where_it_should() {
        assert_eq!(cdata("a]]>b"), "<![CDATA[a]]]]><![CDATA[>b]]>");
        assert_eq!(attribute("\"a\" & <b>\n"), "&quot;a&quot; &amp; &lt;b&gt;");
    }
}
