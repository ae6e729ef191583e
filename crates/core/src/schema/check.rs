//! Checks a schema before it is compiled: it must be small, self-contained, and cheap to validate against.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;
use crate::json::{JsonLimits, measure};

/// Maximum number of subschemas that apply to one location of a value.
const MAX_IN_PLACE: u64 = 10_000;
/// Maximum number of subschemas, with every reference expanded.
const MAX_EXPANDED: u64 = 1_000_000;
/// Maximum number of patterns. Each pattern takes time to compile and to run.
const MAX_PATTERNS: usize = 64;
/// Maximum size of all patterns together, in bytes.
const MAX_PATTERN_BYTES: usize = 16 << 10;
/// Maximum number of anchors. Each lookup of an anchor searches the whole schema.
const MAX_ANCHORS: usize = 64;

/// Keywords with a subschema, or a list of them, for the same location of the value.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords with a subschema, or a list of them, for locations below the current one.
const BELOW: [&str; 9] = [
    "items",
    "prefixItems",
    "additionalItems",
    "additionalProperties",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords with a map of subschemas for locations below the current one.
const BELOW_BY_NAME: [&str; 2] = ["properties", "patternProperties"];
/// Keywords with a map of subschemas that apply only if they are referenced.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// Keywords whose value is a reference.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// URL prefixes of the built-in drafts. Any other dialect would have to be fetched.
const DIALECTS: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];

/// Checks size, references and cost, which the compiler does not check.
pub(super) fn check(schema: &Value) -> Result<(), SchemaError> {
    measure(schema, JsonLimits::SCHEMA)?;
    if let Some(dialect) = schema.get("$schema").and_then(Value::as_str)
        && !DIALECTS.iter().any(|known| dialect.starts_with(known))
    {
        return Err(SchemaError::OutsideReference { at: "/$schema".into(), target: shown(dialect) });
    }
    references_stay_inside(schema, &mut String::new())?;
    few_patterns_and_anchors(schema)?;
    let mut weights = Weights { root: schema, in_place: HashMap::new(), expanded: HashMap::new() };
    weights.in_place_everywhere(schema, &mut String::new())?;
    if weights.expanded(schema) > MAX_EXPANDED {
        return Err(SchemaError::TooComplex { limit: MAX_EXPANDED });
    }
    Ok(())
}

fn shown(text: &str) -> String {
    crate::printable::shorten(&crate::printable::escape(text), 120)
}

fn references_stay_inside(schema: &Value, at: &mut String) -> Result<(), SchemaError> {
    for keyword in REFERENCES {
        if let Some(target) = schema.get(keyword).and_then(Value::as_str)
            && !target.starts_with('#')
        {
            return Err(SchemaError::OutsideReference { at: format!("{at}/{keyword}"), target: shown(target) });
        }
    }
    each_child(schema, at, &mut |child, at| references_stay_inside(child, at))
}

fn few_patterns_and_anchors(schema: &Value) -> Result<(), SchemaError> {
    let (mut patterns, mut bytes, mut anchors) = (0, 0, 0);
    count(schema, &mut |here| {
        let named = here.get("patternProperties").and_then(Value::as_object).into_iter().flatten().map(|(pattern, _)| pattern.as_str());
        for pattern in here.get("pattern").and_then(Value::as_str).into_iter().chain(named) {
            patterns += 1;
            bytes += pattern.len();
        }
        anchors += usize::from(here.get("$anchor").is_some()) + usize::from(here.get("$dynamicAnchor").is_some());
    });
    let message = if patterns > MAX_PATTERNS || bytes > MAX_PATTERN_BYTES {
        format!("a schema has at most {MAX_PATTERNS} patterns, of {MAX_PATTERN_BYTES} bytes together")
    } else if anchors > MAX_ANCHORS {
        format!("a schema has at most {MAX_ANCHORS} anchors")
    } else {
        return Ok(());
    };
    Err(SchemaError::Invalid { at: "/".into(), message })
}

/// Visits every object of a document, because a validator may find patterns anywhere.
fn count(value: &Value, visit: &mut dyn FnMut(&Value)) {
    match value {
        Value::Object(fields) => {
            visit(value);
            fields.values().for_each(|child| count(child, visit));
        }
        Value::Array(items) => items.iter().for_each(|child| count(child, visit)),
        _ => {}
    }
}

/// Visits the direct subschemas of a schema, with the JSON pointer of each.
fn each_child<'s>(
    schema: &'s Value,
    at: &mut String,
    visit: &mut dyn FnMut(&'s Value, &mut String) -> Result<(), SchemaError>,
) -> Result<(), SchemaError> {
    let Some(fields) = schema.as_object() else { return Ok(()) };
    for (keyword, value) in fields {
        let length = enter(at, keyword);
        let keyword = keyword.as_str();
        let by_name = BELOW_BY_NAME.contains(&keyword) || DEFINITIONS.contains(&keyword) || keyword == "dependentSchemas";
        match value {
            Value::Object(named) if by_name => {
                for (name, child) in named {
                    let length = enter(at, &name.replace('~', "~0").replace('/', "~1"));
                    visit(child, at)?;
                    at.truncate(length);
                }
            }
            _ if IN_PLACE.contains(&keyword) || BELOW.contains(&keyword) => match value {
                Value::Array(list) => {
                    for (index, child) in list.iter().enumerate() {
                        let length = enter(at, &index.to_string());
                        visit(child, at)?;
                        at.truncate(length);
                    }
                }
                child => visit(child, at)?,
            },
            _ => {}
        }
        at.truncate(length);
    }
    Ok(())
}

/// Appends a step to a JSON pointer. Returns the previous length, to truncate the pointer to afterwards.
pub(super) fn enter(pointer: &mut String, step: &str) -> usize {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(step);
    length
}

/// Returns the subschemas that apply to the same location as a schema.
fn in_place_children<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let mut children = Vec::new();
    let Some(fields) = schema.as_object() else { return children };
    for (keyword, value) in fields {
        match value {
            Value::Array(list) if IN_PLACE.contains(&keyword.as_str()) => children.extend(list),
            Value::Object(named) if keyword == "dependentSchemas" => children.extend(named.values()),
            Value::String(target) if REFERENCES.contains(&keyword.as_str()) => children.extend(resolve(root, target)),
            child if IN_PLACE.contains(&keyword.as_str()) => children.push(child),
            _ => {}
        }
    }
    children
}

/// Returns the target of a reference within the document.
pub(super) fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return root.pointer(&percent_decoded(fragment));
    }
    anchored(root, fragment)
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) if byte == b'%' => {
                bytes.push(code);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn anchored<'s>(schema: &'s Value, anchor: &str) -> Option<&'s Value> {
    let here = |keyword| schema.get(keyword).and_then(Value::as_str) == Some(anchor);
    if here("$anchor") || here("$dynamicAnchor") {
        return Some(schema);
    }
    match schema {
        Value::Object(fields) => fields.values().find_map(|child| anchored(child, anchor)),
        Value::Array(items) => items.iter().find_map(|child| anchored(child, anchor)),
        _ => None,
    }
}

/// The validation cost of each subschema, computed once. The address of a subschema is its key.
struct Weights<'s> {
    root: &'s Value,
    /// Number of subschemas for the same location; `None` while it is computed. Finding `None` means a reference cycle.
    in_place: HashMap<*const Value, Option<u64>>,
    expanded: HashMap<*const Value, u64>,
}

impl<'s> Weights<'s> {
    fn in_place_everywhere(&mut self, schema: &'s Value, at: &mut String) -> Result<(), SchemaError> {
        match self.in_place(schema) {
            None => return Err(SchemaError::EndlessReference { at: super::explain::pointer(at) }),
            Some(weight) if weight > MAX_IN_PLACE => return Err(SchemaError::TooComplex { limit: MAX_IN_PLACE }),
            Some(_) => {}
        }
        each_child(schema, at, &mut |child, at| self.in_place_everywhere(child, at))
    }

    fn in_place(&mut self, schema: &'s Value) -> Option<u64> {
        if let Some(known) = self.in_place.get(&std::ptr::from_ref(schema)) {
            return *known;
        }
        self.in_place.insert(schema, None);
        let mut weight = 1u64;
        for child in in_place_children(self.root, schema) {
            weight = weight.saturating_add(self.in_place(child)?);
        }
        self.in_place.insert(schema, Some(weight));
        Some(weight)
    }

    /// Returns the number of subschemas with every reference expanded. Recursion counts once, because the depth of the value limits it.
    fn expanded(&mut self, schema: &'s Value) -> u64 {
        if let Some(known) = self.expanded.get(&std::ptr::from_ref(schema)) {
            return *known;
        }
        self.expanded.insert(schema, 1);
        let mut children = in_place_children(self.root, schema);
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            match value {
                Value::Object(named) if BELOW_BY_NAME.contains(&keyword.as_str()) => children.extend(named.values()),
                Value::Array(list) if BELOW.contains(&keyword.as_str()) => children.extend(list),
                child if BELOW.contains(&keyword.as_str()) => children.push(child),
                _ => {}
            }
        }
        let weight = children.into_iter().fold(1u64, |weight, child| weight.saturating_add(self.expanded(child)));
        self.expanded.insert(schema, weight);
        weight
    }
}
