//! Describes the parameters of a tool: as a list with one line each, or as a signature on one line.

use serde_json::Value;

use super::shape::{Member, Shape};
use super::words::Words;
use super::{MAX_PARAMETER_DESCRIPTION, PromptFormat, text, write};

/// Maximum nesting of members in a list.
const MAX_DEPTH: usize = 4;
/// Maximum number of lines in the list of a tool.
const MAX_LINES: usize = 200;
/// Maximum number of enum values in a list.
const MAX_CHOICES: usize = 64;
/// Maximum number of enum values in a signature.
const MAX_SHORT_CHOICES: usize = 8;
/// Maximum length of enum values and defaults, in characters.
const MAX_VALUE: usize = 200;
/// Maximum number of object members in a signature.
const MAX_SHORT_MEMBERS: usize = 6;

/// Returns the parameters that can be written in a format.
pub(super) fn parameters(schema: &Value, form: PromptFormat) -> Vec<Member<'_>> {
    let members = Shape::new(schema).members();
    members.into_iter().filter(|member| form == PromptFormat::Json || text::is_element(member.name)).collect()
}

/// Returns a list with one line per parameter and per nested member.
pub(super) fn list(members: &[Member<'_>], words: &Words) -> Vec<String> {
    let mut list = List { lines: Vec::new(), words };
    list.members(members, 0);
    if list.lines.len() >= MAX_LINES {
        list.lines.truncate(MAX_LINES);
        list.lines.push(words.more.to_owned());
    }
    list.lines
}

struct List<'w> {
    lines: Vec<String>,
    words: &'w Words,
}

impl List<'_> {
    fn members(&mut self, members: &[Member<'_>], depth: usize) {
        for member in members {
            let Some(name) = text::shown_name(member.name) else { continue };
            if self.lines.len() >= MAX_LINES {
                return;
            }
            let words = self.words;
            let mut notes = vec![if member.required { words.required } else { words.optional }.to_owned()];
            notes.extend(notes_on(member.shape, words));
            let notes = format!("{}{}{}", words.open, notes.join(words.between), words.close);
            let description = text::line(member.shape.description(), MAX_PARAMETER_DESCRIPTION);
            let dash = if description.is_empty() { "" } else { words.dash };
            self.line(depth, &format!("{name}: {}{notes}{dash}{description}", member.shape.kind()));
            self.inside(member.shape, depth + 1);
        }
    }

    /// Adds the members of an object, or of the items of an array.
    fn inside(&mut self, shape: Shape<'_>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let shapes: Vec<Shape<'_>> = shape.alternatives().into_iter().map(item_of).collect();
        let mut structured = shapes.iter().filter(|shape| !shape.members().is_empty());
        if let (Some(only), None) = (structured.next(), structured.next()) {
            self.members(&only.members(), depth);
            return;
        }
        for (index, shape) in shapes.iter().enumerate().filter(|(_, shape)| !shape.members().is_empty()) {
            if self.lines.len() >= MAX_LINES {
                return;
            }
            let description = text::line(shape.description(), MAX_PARAMETER_DESCRIPTION);
            let dash = if description.is_empty() { "" } else { self.words.dash };
            let option = self.words.option.replace("{}", &(index + 1).to_string());
            self.line(depth, &format!("{option}: {}{dash}{description}", shape.kind()));
            self.members(&shape.members(), depth + 1);
        }
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.lines.push(format!("{}- {text}", "  ".repeat(depth)));
    }
}

/// Returns the innermost items of nested arrays, or the shape itself if it is not an array.
fn item_of(shape: Shape<'_>) -> Shape<'_> {
    let mut shape = shape;
    for _ in 0..MAX_DEPTH {
        match shape.items().filter(|_| shape.members().is_empty()) {
            Some(items) => shape = items,
            None => break,
        }
    }
    shape
}

/// Returns notes on a parameter: its enum values, default and bounds.
fn notes_on(shape: Shape<'_>, words: &Words) -> Vec<String> {
    let mut notes = Vec::new();
    let only = shape.get("const").map(std::slice::from_ref);
    let items = shape.items().and_then(Shape::choices);
    if let Some(choices) = shape.choices().or(only).or(items).filter(|choices| !choices.is_empty()) {
        let mut shown: Vec<String> = choices.iter().take(MAX_CHOICES).map(value).collect();
        if choices.len() > MAX_CHOICES {
            shown.push("…".to_owned());
        }
        notes.push(words.one_of.replace("{}", &shown.join(words.comma)));
    }
    if let Some(default) = shape.get("default") {
        notes.push(words.default.replace("{}", &value(default)));
    }
    let bound = |key: &str| shape.get(key).filter(|bound| bound.is_number()).map(value);
    match (bound("minimum"), bound("maximum")) {
        (Some(from), Some(to)) => notes.push(words.range.replace("{from}", &from).replace("{to}", &to)),
        (Some(from), None) => notes.push(words.at_least.replace("{}", &from)),
        (None, Some(to)) => notes.push(words.at_most.replace("{}", &to)),
        (None, None) => {}
    }
    notes
}

fn value(value: &Value) -> String {
    text::line(&write::json(value), MAX_VALUE)
}

/// Returns the parameters on one line: `a: string, b?: integer = 10`.
pub(super) fn signature(members: &[Member<'_>]) -> String {
    let shown = members.iter().filter_map(|member| short(member, 1));
    shown.collect::<Vec<_>>().join(", ")
}

fn short(member: &Member<'_>, depth: usize) -> Option<String> {
    let name = text::shown_name(member.name)?;
    let optional = if member.required { "" } else { "?" };
    let default = member.shape.get("default").filter(|default| !default.is_null());
    let default = default.map(|default| format!(" = {}", value(default))).unwrap_or_default();
    Some(format!("{name}{optional}: {}{default}", short_kind(member.shape, depth)))
}

fn short_kind(shape: Shape<'_>, depth: usize) -> String {
    if let Some(choices) = shape.choices().filter(|choices| !choices.is_empty() && choices.len() <= MAX_SHORT_CHOICES) {
        return choices.iter().map(value).collect::<Vec<_>>().join(" | ");
    }
    let members = shape.members();
    if depth == 0 || members.is_empty() || members.len() > MAX_SHORT_MEMBERS {
        return shape.kind();
    }
    let inner: Vec<String> = members.iter().filter_map(|member| short(member, depth - 1)).collect();
    format!("{{{}}}", inner.join(", "))
}
