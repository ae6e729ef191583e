//! Writes calls as a model would write them, for examples, histories and round-trip tests.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::format::{CallTag, Format, Keys, ParameterTag, Shape, Tags};
use crate::formats;
use crate::types::type_of;
use crate::xml::{CDATA, CDATA_END};

/// A call to write.
#[derive(Debug, Clone, Copy)]
pub struct WrittenCall<'a> {
    /// The id of the call. Formats without ids omit it.
    pub id: &'a str,
    /// The tool name.
    pub name: &'a str,
    /// The arguments, by parameter name.
    pub arguments: &'a Map<String, Value>,
}

impl Dialect {
    /// Writes calls in the format with this name. Returns `None` if there is no such format.
    #[must_use]
    pub fn write(format: &str, calls: &[WrittenCall<'_>]) -> Option<String> {
        let format = formats::all().find(|row| row.name == format)?;
        Some(match &format.shape {
            Shape::Object(keys) => objects(format, keys, calls),
            Shape::Headed { heads, .. } => headed(format, heads[0], calls),
            Shape::Tagged(tags) => tagged(format, tags, calls),
            Shape::Python => {
                let separator = if matches!(format.name, "olmo3" | "gemma3_tool_code") { "\n" } else { ", " };
                let all = calls.iter().map(python_call).collect::<Vec<_>>().join(separator);
                let all = if separator == "\n" {
                    format!("{}{all}\n", if format.name == "olmo3" { "\n" } else { "" })
                } else {
                    format!("[{all}]")
                };
                section(format, &all)
            }
            Shape::Braces(mark) => {
                let one = |call: &WrittenCall<'_>| section(format, &format!("call:{}{}", call.name, braces(call.arguments, mark)));
                calls.iter().map(one).collect()
            }
            Shape::Channel => channels(calls),
        })
    }
}

fn section(format: &Format, inner: &str) -> String {
    let mark = |marks: &[&str]| marks.first().copied().unwrap_or_default().to_owned();
    format!("{}{inner}{}", mark(format.section.open), if format.section.must_close { mark(format.section.close) } else { String::new() })
}

fn objects(format: &Format, keys: &Keys, calls: &[WrittenCall<'_>]) -> String {
    let one = |call: &WrittenCall<'_>| {
        let object = object(keys, format, call);
        if keys.python { python(&object) } else { object.to_string() }
    };
    let all: Vec<String> = calls.iter().map(one).collect();
    if format.section.open.first().is_some_and(|open| open.starts_with('{')) {
        return format!("{{\"tool_calls\": [{}]}}", all.join(", "));
    }
    match (format.name, format.list) {
        ("phi4mini", _) => format!("functools[{}]", all.join(", ")),
        (_, true) => section(format, &format!("[{}]", all.join(", "))),
        ("minimax_m1", _) => section(format, &format!("\n{}\n", all.join("\n"))),
        ("llama3_json", _) => all.join("; "),
        ("llama3_python_tag", _) => section(format, &all.join("; ")),
        _ => all.iter().map(|one| section(format, one)).collect::<Vec<_>>().join("\n"),
    }
}

fn object(keys: &Keys, format: &Format, call: &WrittenCall<'_>) -> Value {
    if keys.by_key {
        return json!({ call.name: call.arguments });
    }
    let arguments = if keys.wrapped { json!(Value::Object(call.arguments.clone()).to_string()) } else { json!(call.arguments) };
    let named = json!({keys.name: call.name, keys.arguments: arguments});
    let with_id = matches!(format.name, "helve_json" | "openai_json" | "mistral_v3" | "cohere_action");
    match (keys.wrapped, named) {
        (true, named) => json!({keys.id: call.id, "type": "function", "function": named}),
        (false, Value::Object(mut map)) if with_id => {
            map.insert(keys.id.to_owned(), json!(call.id));
            Value::Object(map)
        }
        (false, named) => named,
    }
}

fn headed(format: &Format, head: &str, calls: &[WrittenCall<'_>]) -> String {
    let mark = |marks: &[&str]| marks.first().copied().unwrap_or_default().to_owned();
    let one = |(place, call): (usize, &WrittenCall<'_>)| {
        let head = match format.name {
            "mistral_v11" => "{name}",
            "deepseek_v31" => "{name}<｜tool▁sep｜>",
            "react" => " {name}\nAction Input: ",
            _ => head,
        };
        let head =
            head.replace("{name}", call.name).replace("{id}", call.id).replace("{function}", &format!("functions.{}:{place}", call.name));
        let arguments = Value::Object(call.arguments.clone());
        let body = if format.name == "deepseek_v3" { format!("```json\n{arguments}\n```") } else { arguments.to_string() };
        let close = if format.call.must_close { mark(format.call.close) } else { String::new() };
        format!("{}{head}{body}{close}", mark(format.call.open))
    };
    let separator = if format.name == "react" { "\n" } else { "" };
    section(format, &calls.iter().enumerate().map(one).collect::<Vec<_>>().join(separator))
}

fn tagged(format: &Format, tags: &Tags, calls: &[WrittenCall<'_>]) -> String {
    let one = |(place, call): (usize, &WrittenCall<'_>)| {
        let mut text = String::new();
        let mark = |marks: &[&str]| marks.first().copied().unwrap_or_default().to_owned();
        text += &mark(format.call.open);
        let tag = |inner: &str| format!("{}{inner}{}", tags.open, tags.end);
        let close = |inner: &str| format!("{}{inner}{}", tags.close, tags.end);
        let break_line = if tags.lines || matches!(tags.parameter, ParameterTag::Child(_)) { "\n" } else { "" };
        let end = match tags.call {
            CallTag::Equals(stem) => {
                let _ = write!(text, "\n{}\n", tag(&format!("{stem}={}", call.name)));
                format!("{}\n", close(stem))
            }
            CallTag::Attribute(stem, attribute) => {
                let number = if attribute == "tool" { format!(" index=\"{}\"", place + 1) } else { String::new() };
                let id = if stem == "tool_call" { format!("id=\"{}\" ", escaped(call.id)) } else { String::new() };
                text += &tag(&format!("{stem} {id}{attribute}=\"{}\"{number}", escaped(call.name)));
                close(stem)
            }
            CallTag::Text(separator) => {
                let _ = write!(text, "{}{}", call.name, separator.unwrap_or(if format.name == "glm47" { "" } else { "\n" }));
                String::new()
            }
            CallTag::Child(child) => {
                let _ = write!(text, "\n  {}{}{}", tag(child), call.name, close(child));
                String::new()
            }
        };
        let wrapper = match tags.parameter {
            ParameterTag::Child([first, ..]) => Some(*first),
            _ => None,
        };
        if let Some(wrapper) = wrapper {
            let _ = write!(text, "\n  {}\n", tag(wrapper));
        }
        for (key, value) in call.arguments {
            text += &parameter(format, tags, key, value);
            text += break_line;
        }
        if let Some(wrapper) = wrapper {
            let _ = writeln!(text, "  {}", close(wrapper));
        }
        format!("{text}{end}{}", mark(format.call.close))
    };
    let each: Vec<String> = calls.iter().enumerate().map(one).collect();
    match tags.call {
        CallTag::Equals(_) => each.iter().map(|one| section(format, one)).collect::<Vec<_>>().join("\n"),
        _ => section(format, &each.join("\n")),
    }
}

fn parameter(format: &Format, tags: &Tags, key: &str, value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let (open, close, end) = (tags.open, tags.close, tags.end);
    match tags.parameter {
        ParameterTag::Equals(stem) => format!("{open}{stem}={key}{end}\n{text}\n{close}{stem}{end}"),
        ParameterTag::Attribute(stem, attribute) => {
            let kind = match (tags.typed, value) {
                (Some("string"), value) => format!(" string=\"{}\"", value.is_string()),
                (Some(typed), value) => format!(" {typed}=\"{}\"", type_of(value)),
                _ => String::new(),
            };
            format!("{open}{stem} {attribute}=\"{}\"{kind}{end}{text}{close}{stem}{end}", escaped(key))
        }
        ParameterTag::Pair(key_tag, value_tag) => {
            format!("{open}{key_tag}{end}{key}{close}{key_tag}{end}{open}{value_tag}{end}{text}{close}{value_tag}{end}")
        }
        ParameterTag::Child(_) => {
            let body = match (format.name, value) {
                ("helve_xml", _) => format!("{CDATA}{}{CDATA_END}", text.replace(CDATA_END, "]]]]><![CDATA[>")),
                ("minimax_m3", Value::Object(members)) => {
                    let inner: String = members.iter().map(|(key, value)| parameter(format, tags, key, value)).collect();
                    format!("\n{inner}")
                }
                ("minimax_m3", Value::Array(items)) => {
                    let inner: String = items.iter().map(|value| parameter(format, tags, "item", value)).collect();
                    format!("\n{inner}")
                }
                _ if tags.entities => escaped(&text),
                _ => text,
            };
            format!("{open}{key}{end}{body}{close}{key}{end}")
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn channels(calls: &[WrittenCall<'_>]) -> String {
    let one = |(place, call): (usize, &WrittenCall<'_>)| {
        let start = if place > 0 { "<|start|>assistant" } else { "" };
        let arguments = Value::Object(call.arguments.clone());
        format!("{start}<|channel|>commentary to=functions.{} <|constrain|>json<|message|>{arguments}<|call|>", call.name)
    };
    calls.iter().enumerate().map(one).collect()
}

fn python_call(call: &WrittenCall<'_>) -> String {
    let arguments: Vec<String> = call.arguments.iter().map(|(key, value)| format!("{key}={}", python(value))).collect();
    format!("{}({})", call.name, arguments.join(", "))
}

fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        // JSON escapes are valid in Python, except for `\/`, which is never written.
        Value::String(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members: Vec<String> = members.iter().map(|(key, value)| format!("{}: {}", json!(key), python(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

fn braces(members: &Map<String, Value>, mark: &str) -> String {
    let members: Vec<String> = members.iter().map(|(key, member)| format!("{key}:{}", brace_value(member, mark))).collect();
    format!("{{{}}}", members.join(","))
}

fn brace_value(value: &Value, mark: &str) -> String {
    match value {
        Value::String(text) => format!("{mark}{text}{mark}"),
        Value::Array(items) => format!("[{}]", items.iter().map(|item| brace_value(item, mark)).collect::<Vec<_>>().join(",")),
        Value::Object(members) => braces(members, mark),
        other => other.to_string(),
    }
}
