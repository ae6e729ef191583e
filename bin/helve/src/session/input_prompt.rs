//! Asks a person for the input that a tool requests: one line per field.

use helve::internal::json::{JsonLimits, parse};
use helve::internal::printable;
use helve::permission::Decision;
use helve::tool::{InputNeeded, InputRequest, Problem, Schema};
use serde_json::{Map, Value, json};

use super::approval_prompt::ReadLine;
use crate::terminal::language::{Language, is_no, is_yes};
use crate::terminal::{self, CAREFUL, FAINT, STRONG, styled};

/// Maximum number of attempts to fill in the fields.
const ATTEMPTS: usize = 5;

/// Shows the input requests of a tool, and reads the input. Denies if the person declines.
pub fn ask(tool: &str, needed: &InputNeeded, read: ReadLine<'_>) -> Decision {
    read_input(tool, needed, read).map_or(Decision::Deny { reason: None }, Decision::Edit)
}

fn read_input(tool: &str, needed: &InputNeeded, read: ReadLine<'_>) -> Option<Value> {
    let language = Language::of_environment();
    let mut inputs = Map::new();
    for request in &needed.requests {
        let title = language.choose("Input requested by", "工具请求输入：");
        terminal::note_exactly(&format!("{} {}", styled(CAREFUL, title), styled(STRONG, &printable::escape_line(tool))));
        for line in printable::escape(&request.message).lines() {
            terminal::note_exactly(&format!("  {line}"));
        }
        if let Some(url) = &request.url {
            terminal::note_exactly(&format!("  {}", styled(STRONG, &printable::escape_line(url))));
        }
        let prompt_text = language.choose("Provide it? ", "是否提供？");
        let answer = read(&format!("{prompt_text}{} ", styled(FAINT, language.choose("[y]es / [n]o", "[y] 是 / [n] 否"))), "")?;
        if !is_yes(&answer) {
            return None;
        }
        inputs.insert(request.key.clone(), fields(request, read)?);
    }
    if needed.requests.len() == 1 { inputs.into_iter().next().map(|(_, input)| input) } else { Some(Value::Object(inputs)) }
}

/// Reads the fields of one request.
fn fields(request: &InputRequest, read: ReadLine<'_>) -> Option<Value> {
    let Some(schema) = &request.schema else { return Some(json!({})) };
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for _ in 0..ATTEMPTS {
        let mut input = Map::new();
        for (name, property) in &properties {
            let line = read(&format!("  {} ", prompt(name, property)), "")?;
            match value(line.trim(), property) {
                Ok(Some(value)) => drop(input.insert(name.clone(), value)),
                Ok(None) => {}
                Err(why) => terminal::note(&format!("  {why}")),
            }
        }
        let input = Value::Object(input);
        let problems: Vec<Problem> = Schema::new(schema.clone()).map(|schema| schema.check(&input)).unwrap_or_default();
        if problems.is_empty() {
            return Some(input);
        }
        for problem in &problems {
            terminal::note(&format!("  {}", printable::escape_line(&problem.to_string())));
        }
    }
    None
}

/// Returns the prompt of a field: its name, description, options and default.
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

/// Returns the values that a field, or an item of a list, may have.
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

/// Converts a line to the type of the field. Returns `None` if the line is empty.
fn value(line: &str, property: &Value) -> Result<Option<Value>, String> {
    if line.is_empty() {
        return Ok(None);
    }
    let number = |line: &str| parse(line.as_bytes(), JsonLimits::ARGUMENTS).ok().filter(Value::is_number);
    Ok(Some(match property.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => number(line).ok_or_else(|| "enter a number".to_owned())?,
        Some("boolean") => match line.to_lowercase().as_str() {
            "true" => json!(true),
            "false" => json!(false),
            line if is_yes(line) => json!(true),
            line if is_no(line) => json!(false),
            _ => return Err("enter yes or no".to_owned()),
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
        read_input("t", &request(), &mut |_, _| lines.next())
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
