//! Generates arguments for an example call: examples from the schema first, then defaults and enum values, then a value of the right type.

use std::cell::Cell;

use serde_json::{Map, Value, json};

use super::shape::{Member, Shape};
use super::words::Words;
use super::{PromptFormat, PromptTool, text, write};
use crate::event::Mode;
use crate::repair::Repairs;
use crate::types::Types;

/// Maximum number of parameters up to which optional ones are added to an example.
const MAX_PARAMETERS: usize = 6;
/// Maximum length of an example value from the schema, in bytes of JSON.
const MAX_VALUE: usize = 200;
/// Maximum nesting of generated values.
const MAX_DEPTH: usize = 4;
/// Maximum number of values generated for one tool.
const MAX_MADE: usize = 200;

/// Returns the arguments of an example call: all required parameters, and optional ones whose schema has an example, default or enum.
pub(super) fn arguments(tool: &PromptTool<'_>, form: PromptFormat, words: &Words) -> Map<String, Value> {
    let maker = Maker { words, made: Cell::new(0) };
    let shape = Shape::new(tool.parameters);
    let writable = |member: &Member<'_>| match form {
        PromptFormat::Json => text::shown_name(member.name).is_some(),
        PromptFormat::Xml => text::is_element(member.name),
    };
    let members: Vec<Member<'_>> = shape.members().into_iter().filter(writable).collect();
    let needed = members.iter().filter(|member| member.required).count();
    let mut room = MAX_PARAMETERS.saturating_sub(needed);
    let mut chosen = Map::new();
    for member in &members {
        if !member.required {
            if room == 0 || !authored(member.shape).iter().any(|value| !value.is_null()) {
                continue;
            }
            room -= 1;
        }
        chosen.insert(member.name.to_owned(), maker.argument(member, form, tool.parameters));
    }
    if let (true, Some(first)) = (chosen.is_empty(), members.first()) {
        chosen.insert(first.name.to_owned(), maker.argument(first, form, tool.parameters));
    }
    chosen
}

struct Maker<'w> {
    words: &'w Words,
    made: Cell<usize>,
}

impl Maker<'_> {
    /// Returns a value that parses back to itself. In XML the schema determines the type of a text, so not every value can be written.
    fn argument(&self, member: &Member<'_>, form: PromptFormat, root: &Value) -> Value {
        let mut candidates = self.candidates(member.shape, member.name, MAX_DEPTH);
        if form == PromptFormat::Json {
            return candidates.swap_remove(0);
        }
        let types = Types::new(root.is_object().then_some(root), Mode::Strict);
        let read = |value: &Value| types.of_text(&write::plain(value), types.parameter(member.name), &mut Repairs::default());
        let exact = candidates.iter().find(|value| read(value) == **value);
        exact.cloned().unwrap_or_else(|| read(&candidates[0]))
    }

    /// Returns possible values, the best first. The list is never empty.
    fn candidates(&self, shape: Shape<'_>, name: &str, depth: usize) -> Vec<Value> {
        let fits = |value: &&Value| !value.is_null() && is_presentable(value);
        let alternatives = shape.alternatives();
        let mut found: Vec<Value> = authored(shape).into_iter().filter(fits).cloned().collect();
        found.extend(alternatives.iter().flat_map(|shape| authored(*shape)).filter(fits).cloned());
        if alternatives.is_empty() {
            found.push(Value::Null);
        }
        found.extend(alternatives.iter().map(|shape| self.make(*shape, name, depth)));
        found
    }

    fn make(&self, shape: Shape<'_>, name: &str, depth: usize) -> Value {
        self.made.set(self.made.get() + 1);
        let deeper = depth > 0 && self.made.get() < MAX_MADE;
        match shape.types().first() {
            Some(&("integer" | "number")) => within(shape, 1),
            Some(&"boolean") => Value::Bool(true),
            Some(&"null") => Value::Null,
            Some(&"array") => match shape.items().filter(|_| deeper) {
                Some(items) => {
                    let least = shape.get("minItems").and_then(Value::as_u64).unwrap_or(1).clamp(1, 3);
                    let item = self.candidates(items, name, depth - 1).swap_remove(0);
                    (0..least).map(|_| item.clone()).collect()
                }
                None => json!([]),
            },
            Some(&"object") if deeper => {
                let members = shape.members();
                let any = members.iter().any(|member| member.required);
                let shown = members.iter().filter(|member| member.required || !any).take(if any { usize::MAX } else { 1 });
                let shown = shown.filter(|member| text::shown_name(member.name).is_some());
                shown.map(|member| (member.name.to_owned(), self.candidates(member.shape, member.name, depth - 1).swap_remove(0))).collect()
            }
            Some(&"object") => json!({}),
            _ => Value::String(self.string(shape, name)),
        }
    }

    fn string(&self, shape: Shape<'_>, name: &str) -> String {
        let known = match shape.get("format").and_then(Value::as_str) {
            Some("date") => "2026-01-31",
            Some("time") => "08:30:00Z",
            Some("date-time") => "2026-01-31T08:30:00Z",
            Some("uri" | "url") => "https://example.com",
            Some("email") => "name@example.com",
            Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
            _ if text::is_name(name) => return format!("{} {name}", self.words.example_value),
            _ => self.words.example_value,
        };
        known.to_owned()
    }
}

/// Returns values from the schema: examples, default, constant and enum values.
fn authored(shape: Shape<'_>) -> Vec<&Value> {
    let examples = shape.get("examples").and_then(Value::as_array).into_iter().flatten();
    let one = ["example", "default", "const"].iter().filter_map(|key| shape.get(key));
    examples.chain(one).chain(shape.choices().into_iter().flatten()).take(16).collect()
}

/// Returns whether a value can be shown unchanged: it is short, on one line, and has no hidden characters.
fn is_presentable(value: &Value) -> bool {
    fn clean(value: &Value) -> bool {
        match value {
            Value::String(string) => text::line(string, MAX_VALUE) == *string,
            Value::Array(items) => items.iter().all(clean),
            Value::Object(members) => members.iter().all(|(key, value)| text::line(key, MAX_VALUE) == *key && clean(value)),
            _ => true,
        }
    }
    clean(value) && write::json(value).len() <= MAX_VALUE
}

/// Returns the number within the schema's bounds that is closest to `near`.
fn within(shape: Shape<'_>, near: i64) -> Value {
    let bound = |key: &str, exclusive: &str, step: i64| {
        let whole = |value: &Value| value.as_i64();
        shape.get(key).and_then(whole).or_else(|| shape.get(exclusive).and_then(whole).and_then(|bound| bound.checked_add(step)))
    };
    let least = bound("minimum", "exclusiveMinimum", 1).unwrap_or(i64::MIN);
    let most = bound("maximum", "exclusiveMaximum", -1).unwrap_or(i64::MAX);
    json!(near.max(least).min(most))
}
