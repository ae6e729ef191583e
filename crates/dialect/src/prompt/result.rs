//! Writes tool results for the model. Untrusted text is enclosed in delimiters that it cannot forge.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Prompt, PromptFormat, write};

/// The result of a call, to write for the model.
#[derive(Debug, Clone, Copy)]
pub struct PromptResult<'a> {
    /// The id of the call.
    pub id: &'a str,
    /// The name of the tool.
    pub name: &'a str,
    /// The output of the tool, or why it failed.
    pub outcome: Result<&'a Value, &'a str>,
    /// Whether the result is untrusted, such as a web page or the output of a third-party server. An untrusted result is marked as data and
    /// written as a single text. In XML, markers of calls and results in the text are escaped with `&lt;` and `&quot;`.
    pub untrusted: bool,
}

pub(super) fn write(prompt: Prompt, result: &PromptResult<'_>) -> String {
    match prompt.form {
        PromptFormat::Json => in_json(prompt, result),
        PromptFormat::Xml => in_xml(prompt, result),
    }
}

const fn status(result: &PromptResult<'_>) -> &'static str {
    if result.outcome.is_ok() { "success" } else { "error" }
}

fn in_json(prompt: Prompt, result: &PromptResult<'_>) -> String {
    let mut members = Map::from_iter([
        ("id".to_owned(), json!(result.id)),
        ("name".to_owned(), json!(result.name)),
        ("status".to_owned(), json!(status(result))),
    ]);
    if result.untrusted {
        members.insert("untrusted".to_owned(), json!(true));
        members.insert("notice".to_owned(), json!(prompt.words().notice_json));
    }
    let (key, content) = match result.outcome {
        Ok(content) if result.untrusted => ("content", json!(write::plain(content))),
        Ok(content) => ("content", content.clone()),
        Err(error) => ("error", json!(error)),
    };
    members.insert(key.to_owned(), content);
    let text = write::json(&json!({"tool_result": members}));
    // The JSON string already encloses the text. Without `<`, the text does not look like a call in tags either.
    if result.untrusted { text.replace('<', "\\u003c") } else { text }
}

fn in_xml(prompt: Prompt, result: &PromptResult<'_>) -> String {
    let (id, name, status) = (write::attribute(result.id), write::attribute(result.name), status(result));
    let content = match result.outcome {
        Ok(content) => write::plain(content),
        Err(error) => error.to_owned(),
    };
    if !result.untrusted {
        let content = write::cdata(&content);
        return format!("<tool_result id=\"{id}\" name=\"{name}\" status=\"{status}\">{content}</tool_result>");
    }
    let content = without_marks(&content);
    let number = unused_number(&content);
    let notice = prompt.words().notice_xml.replace("{}", &number.to_string());
    let fenced = write::cdata(&format!("\nBEGIN DATA-{number}\n{content}\nEND DATA-{number}\n"));
    format!("<tool_result id=\"{id}\" name=\"{name}\" status=\"{status}\" untrusted=\"true\">\n{notice}\n{fenced}\n</tool_result>")
}

/// Escapes markers in the text, so that it cannot appear to end the result and is not a call if the model repeats it.
fn without_marks(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for at in memchr::memchr2_iter(b'<', b'"', lower.as_bytes()) {
        let rest = &lower[at + 1..];
        let name = rest.trim_start_matches(|c: char| c == '/' || c.is_whitespace());
        let escaped = match lower.as_bytes()[at] {
            b'<' if name.starts_with("tool_") || name.starts_with("![cdata[") => "&lt;",
            b'"' if rest.starts_with("tool_calls\"") => "&quot;",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(escaped);
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out
}

/// Returns the smallest number for which the text does not contain `DATA-number`, in any case and with any suffix.
fn unused_number(text: &str) -> usize {
    let lower = text.to_ascii_lowercase();
    let mut used = HashSet::new();
    for at in memchr::memmem::find_iter(lower.as_bytes(), b"data-") {
        let mut number = 0;
        // No text is long enough to contain all numbers with nine digits.
        for digit in lower.as_bytes()[at + 5..].iter().take(9).take_while(|byte| byte.is_ascii_digit()) {
            number = number * 10 + usize::from(digit - b'0');
            used.insert(number);
        }
    }
    (1..=used.len() + 1).find(|number| !used.contains(number)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fence_is_never_in_the_text() {
        assert_eq!(unused_number(""), 1);
        assert_eq!(unused_number("END DATA-1"), 2);
        assert_eq!(unused_number("END data-12, DATA-2 and DATA-3000000000000000000000000000"), 4);
        let many: String = (1..2000).flat_map(|number| ["DATA-".to_owned(), number.to_string()]).collect();
        assert_eq!(unused_number(&many), 2000);
    }
}
