//! Converts keywords that depend on other keywords: `required`, exclusive bounds, `nullable` and `default`.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::combine::merged;
use super::nullable::with_null;
use crate::openapi::text::{clean, sentence};

/// Maximum length of a default that a description mentions, in characters.
const MAX_DEFAULT: usize = 60;

/// Merges `allOf`, allows null if the schema is nullable, and adds the default to the description.
pub(super) fn finished(fields: &Map<String, Value>, schema: Map<String, Value>) -> Map<String, Value> {
    let mut schema = merged(schema);
    if fields.get("nullable") == Some(&Value::Bool(true)) {
        schema = with_null(schema);
    }
    mention_default(fields, &mut schema);
    schema
}

/// Adds the keyword `required` to the schema, without hidden properties.
pub(super) fn required(fields: &Map<String, Value>, hidden: &HashSet<&str>, schema: &mut Map<String, Value>) {
    let mut names: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    for name in fields.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !hidden.contains(name) && seen.insert(name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        schema.insert("required".into(), json!(names));
    }
}

/// Converts the boolean flags of OpenAPI 3.0 to numeric exclusive bounds.
pub(super) fn bounds(fields: &Map<String, Value>, schema: &mut Map<String, Value>) {
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if fields.get(flag) == Some(&Value::Bool(true))
            && let Some(value) = schema.shift_remove(bound)
        {
            schema.insert(flag.into(), value);
        }
    }
}

fn mention_default(fields: &Map<String, Value>, schema: &mut Map<String, Value>) {
    let Some(default) = fields.get("default").filter(|default| !default.is_null()) else { return };
    let written = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
    let known = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    if written.is_empty() || written.chars().count() > MAX_DEFAULT || known.to_lowercase().contains("default") {
        return;
    }
    let mention = format!("{} Default: {}.", sentence(known), clean(&written, MAX_DEFAULT));
    schema.insert("description".into(), json!(mention.trim_start()));
}
