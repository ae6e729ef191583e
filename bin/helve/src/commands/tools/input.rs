//! Asking the person at the terminal what a tool wants to know: one line for each field.

use helve::internal::json::{JsonLimits, parse};
use helve::internal::printable;
use helve::tool::{InputNeeded, InputRequest, Problem, Schema};
use serde_json::{Map, Value, json};

use crate::chat::approval_prompt::Language;
use crate::terminal::{self, CAREFUL, FAINT, STRONG, styled};

/// How often a person may answer something that does not fit.
const TRIES: usize = 5;

/// Shows what a tool wants to know, and reads the answer; nothing where the person says no.
pub fn ask(tool: &str, needed: &InputNeeded, read: &mut dyn FnMut(&str) -> Option<String>) -> Option<Value> {
    let language = Language::of_environment();
    let words = |english: &'static str, chinese: &'static str| if language == Language::Chinese { chinese } else { english };
    let mut answers = Map::new();
    for request in &needed.requests {
        let title = words("The tool asks:", "工具询问：");
        terminal::note_exactly(&format!("{} {}", styled(CAREFUL, title), styled(STRONG, &printable::escape_line(tool))));
        for line in printable::escape(&request.message).lines() {
            terminal::note_exactly(&format!("  {line}"));
        }
        if let Some(url) = &request.url {
            terminal::note_exactly(&format!("  {}", styled(STRONG, &printable::escape_line(url))));
        }
        let question = words("Answer it? ", "回答吗？");
        let answer = read(&format!("{question}{} ", styled(FAINT, "[y]es / [n]o")))?;
        if !matches!(answer.trim().to_lowercase().as_str(), "y" | "yes" | "是" | "好") {
            return None;
        }
        answers.insert(request.key.clone(), fields(request, read)?);
    }
    if needed.requests.len() == 1 { answers.into_iter().next().map(|(_, answer)| answer) } else { Some(Value::Object(answers)) }
}

/// Reads the fields of one request.
fn fields(request: &InputRequest, read: &mut dyn FnMut(&str) -> Option<String>) -> Option<Value> {
    let Some(schema) = &request.schema else { return Some(json!({})) };
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for _ in 0..TRIES {
        let mut answer = Map::new();
        for (name, property) in &properties {
            let line = read(&format!("  {} ", prompt(name, property)))?;
            match value(line.trim(), property) {
                Ok(Some(value)) => drop(answer.insert(name.clone(), value)),
                Ok(None) => {}
                Err(why) => terminal::note(&format!("  {why}")),
            }
        }
        let answer = Value::Object(answer);
        let problems: Vec<Problem> = Schema::new(schema.clone()).map(|schema| schema.check(&answer)).unwrap_or_default();
        // What has a default may be left out, so only what was written can be wrong, or what must be there.
        if problems.is_empty() {
            return Some(answer);
        }
        for problem in &problems {
            terminal::note(&format!("  {}", printable::escape_line(&problem.to_string())));
        }
    }
    None
}

/// What a field is asked with: its name, what it means, what it may be.
fn prompt(name: &str, property: &Value) -> String {
    let text = |field: &str| property.get(field).and_then(Value::as_str);
    let mut notes: Vec<String> = Vec::new();
    notes.extend(text("description").map(str::to_owned));
    let options = options(property);
    if !options.is_empty() {
        notes.push(options.join(" | "));
    } else if text("type") != Some("string") {
        notes.extend(text("type").map(str::to_owned));
    }
    notes.extend(property.get("default").map(|default| format!("default {default}")));
    let title = printable::escape_line(text("title").unwrap_or(name));
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", printable::escape_line(&notes.join(", "))) };
    format!("{title}{}:", styled(FAINT, &notes))
}

/// The values that a field, or the items of a list, may have.
fn options(property: &Value) -> Vec<String> {
    let of = |property: &Value| -> Vec<String> {
        let named = property.get("enum").and_then(Value::as_array).into_iter().flatten().cloned();
        let titled = ["oneOf", "anyOf"].iter().filter_map(|field| property.get(*field)?.as_array()).flatten();
        let titled = titled.filter_map(|option| option.get("const").cloned());
        named.chain(titled).map(|option| option.as_str().map_or_else(|| option.to_string(), str::to_owned)).collect()
    };
    let own = of(property);
    if own.is_empty() { property.get("items").map(of).unwrap_or_default() } else { own }
}

/// What a person wrote, as the field wants it; nothing where they wrote nothing.
fn value(line: &str, property: &Value) -> Result<Option<Value>, String> {
    if line.is_empty() {
        return Ok(None);
    }
    let number = |line: &str| parse(line.as_bytes(), JsonLimits::ARGUMENTS).ok().filter(Value::is_number);
    Ok(Some(match property.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => number(line).ok_or_else(|| "please write a number".to_owned())?,
        Some("boolean") => match line.to_lowercase().as_str() {
            "y" | "yes" | "true" | "是" => json!(true),
            "n" | "no" | "false" | "否" => json!(false),
            _ => return Err("please write yes or no".to_owned()),
        },
        Some("array") => line.split([',', '，']).map(|item| json!(item.trim())).collect(),
        _ => json!(line),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> InputNeeded {
        let schema = json!({"type": "object", "required": ["name", "age"], "properties": {
            "name": {"type": "string", "description": "who"}, "age": {"type": "integer"},
            "kind": {"type": "string", "enum": ["a", "b"], "default": "a"}, "sure": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}}}});
        InputNeeded::new(vec![InputRequest { key: "k".into(), message: "Who?".into(), schema: Some(schema), url: None }], json!(1))
    }

    fn answered(lines: &[&str]) -> Option<Value> {
        let mut lines = lines.iter().map(|line| (*line).to_owned());
        ask("t", &request(), &mut |_| lines.next())
    }

    #[test]
    fn each_field_is_read_as_what_it_is() {
        assert_eq!(
            answered(&["y", "Ada", "36", "", "yes", "x, y"]),
            Some(json!({"name": "Ada", "age": 36, "sure": true, "tags": ["x", "y"]}))
        );
    }

    #[test]
    fn what_does_not_fit_is_asked_again_and_a_no_is_a_no() {
        assert_eq!(
            answered(&["y", "Ada", "old", "c", "", "", "Ada", "3", "b", "", ""]),
            Some(json!({"name": "Ada", "age": 3, "kind": "b"}))
        );
        assert_eq!(answered(&["n"]), None);
        assert_eq!(answered(&["maybe"]), None);
        assert_eq!(answered(&["y", "Ada"]), None, "the input ended");
    }
}
