//! Converts the schemas of a document to JSON Schemas for requests: resolves references, and translates OpenAPI 3.0 keywords.
//!
//! References are inlined, because models understand inlined schemas best. Recursive references become definitions. Descriptions mention
//! defaults, but defaults are not filled in, because a partial update would then reset all other fields.

mod combine;
mod definitions;
mod finish;
mod nullable;

use std::collections::{HashMap, HashSet};

use helve_core::Schema;
use serde_json::{Map, Value, json};

use self::definitions::Definitions;
use self::finish::{bounds, finished, required};
pub(super) use self::nullable::without_null;
use super::Obstacle;
use super::document::Document;
use super::text::{READ_FOR_ONE, clean};

/// Maximum number of inlined schemas of a tool. If there are more, references are used instead.
const MAX_INLINE: usize = 2_000;
/// Maximum number of schemas of a tool if references are used.
const MAX_SCHEMAS: usize = 10_000;
/// Maximum depth of inlined schemas. Each level takes two levels of JSON, of which 64 are allowed.
const MAX_INLINE_DEPTH: usize = 28;
/// Maximum depth of schemas through references.
const MAX_DEPTH: usize = 100;
/// Maximum length of a description in characters.
const MAX_DESCRIPTION: usize = 400;

/// Keywords that are copied unchanged.
const COPIED: [&str; 17] = [
    "type",
    "enum",
    "const",
    "format",
    "multipleOf",
    "maximum",
    "minimum",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxContains",
    "minContains",
    "maxProperties",
    "minProperties",
    "dependentRequired",
];
/// Keywords that contain one schema.
const ONE: [&str; 11] = [
    "items",
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];
/// Keywords that contain a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// A cache of which regular expressions can be matched in linear time.
#[derive(Default)]
pub(super) struct Patterns(HashMap<String, bool>);

impl Patterns {
    fn usable(&mut self, pattern: &str) -> bool {
        if let Some(known) = self.0.get(pattern) {
            return *known;
        }
        let usable = Schema::new(json!({"pattern": pattern})).is_ok();
        self.0.insert(pattern.to_owned(), usable);
        usable
    }
}

/// A converter for the schemas of one tool.
pub(super) struct Converter<'a, 'd> {
    document: &'a Document<'d>,
    patterns: &'a mut Patterns,
    /// Whether references are inlined.
    inline: bool,
    /// The number of schemas converted so far, including surcharges for long lists and descriptions.
    work: usize,
    /// The references that are being resolved.
    open: Vec<&'d str>,
    /// The references whose schemas refer to themselves.
    recursive: HashSet<&'d str>,
    definitions: Definitions<'d>,
}

impl<'a, 'd> Converter<'a, 'd> {
    pub fn new(document: &'a Document<'d>, patterns: &'a mut Patterns, inline: bool) -> Self {
        let (open, recursive, definitions) = (Vec::new(), HashSet::new(), Definitions::default());
        Self { document, patterns, inline, work: 0, open, recursive, definitions }
    }

    /// Converts a schema of the document.
    pub fn convert(&mut self, schema: &'d Value) -> Result<Value, Obstacle> {
        self.any(schema, 0)
    }

    /// Returns the schema, or its definition if the schema is a reference.
    pub fn opened<'v>(&'v self, schema: &'v Value) -> &'v Value {
        definitions::referred(schema).and_then(|name| self.definitions.get(name)).unwrap_or(schema)
    }

    /// Returns the definitions that the schemas need.
    pub fn definitions<'v>(&self, schemas: impl IntoIterator<Item = &'v Value>) -> Map<String, Value> {
        self.definitions.needed(schemas)
    }

    fn any(&mut self, schema: &'d Value, depth: usize) -> Result<Value, Obstacle> {
        self.spend(1)?;
        match schema {
            Value::Bool(_) => Ok(schema.clone()),
            Value::Object(_) if self.inline && depth > MAX_INLINE_DEPTH => Err(Obstacle::TooLarge),
            Value::Object(_) if depth > MAX_DEPTH => Err(Obstacle::Reason("its schemas are nested too deeply".into())),
            Value::Object(fields) => match fields.get("$ref") {
                Some(Value::String(reference)) => self.reference(reference, fields, depth),
                _ => Ok(Value::Object(finished(fields, self.keywords(fields, depth)?))),
            },
            _ => Err(Obstacle::Reason("one of its schemas is not an object".into())),
        }
    }

    fn spend(&mut self, work: usize) -> Result<(), Obstacle> {
        self.work += work;
        if self.work > if self.inline { MAX_INLINE } else { MAX_SCHEMAS } { Err(Obstacle::TooLarge) } else { Ok(()) }
    }

    /// Converts a reference and its sibling keywords, which also apply.
    fn reference(&mut self, reference: &'d str, fields: &'d Map<String, Value>, depth: usize) -> Result<Value, Obstacle> {
        let target = self.expanded(reference, depth)?;
        let mut beside = self.keywords(fields, depth)?;
        let mut parts = vec![target];
        if let Some(Value::Array(more)) = beside.shift_remove("allOf") {
            parts.extend(more);
        }
        beside.insert("allOf".into(), Value::Array(parts));
        Ok(Value::Object(finished(fields, beside)))
    }

    fn expanded(&mut self, reference: &'d str, depth: usize) -> Result<Value, Obstacle> {
        let is_open = self.open.contains(&reference);
        if is_open {
            self.recursive.insert(reference);
        }
        if is_open || self.definitions.has(reference) {
            return Ok(self.definitions.reference(reference));
        }
        let target = self.document.target(reference)?;
        self.open.push(reference);
        let schema = self.any(target, depth + 1)?;
        self.open.pop();
        if self.inline && !self.recursive.contains(reference) {
            return Ok(schema);
        }
        Ok(self.definitions.define(reference, schema))
    }

    /// Converts the keywords that matter for requests, and drops all others.
    fn keywords(&mut self, fields: &'d Map<String, Value>, depth: usize) -> Result<Map<String, Value>, Obstacle> {
        let mut schema = Map::new();
        let mut hidden = HashSet::new();
        for (keyword, value) in fields {
            let converted = match (keyword.as_str(), value) {
                ("items", Value::Array(_)) => {
                    schema.insert("prefixItems".into(), self.list(value, depth)?);
                    continue;
                }
                (name, _) if COPIED.contains(&name) => {
                    self.spend(value.as_array().map_or(0, Vec::len))?;
                    value.clone()
                }
                (name, _) if ONE.contains(&name) => self.any(value, depth + 1)?,
                (name, Value::Array(list)) if LISTS.contains(&name) && !list.is_empty() => self.list(value, depth)?,
                ("properties", Value::Object(named)) => self.properties(named, &mut hidden, depth)?,
                ("patternProperties" | "dependentSchemas", Value::Object(named)) => self.named(keyword, named, depth)?,
                ("exclusiveMaximum" | "exclusiveMinimum", Value::Number(_)) => value.clone(),
                ("pattern", Value::String(pattern)) if self.patterns.usable(pattern) => value.clone(),
                ("description", Value::String(text)) => {
                    // Count cleaning a description as work.
                    self.spend(text.len().min(MAX_DESCRIPTION * READ_FOR_ONE) / 200)?;
                    json!(clean(text, MAX_DESCRIPTION))
                }
                _ => continue,
            };
            schema.insert(keyword.clone(), converted);
        }
        schema.retain(|keyword, value| keyword != "description" || *value != "");
        required(fields, &hidden, &mut schema);
        bounds(fields, &mut schema);
        Ok(schema)
    }

    fn list(&mut self, list: &'d Value, depth: usize) -> Result<Value, Obstacle> {
        let list = list.as_array().into_iter().flatten();
        list.map(|schema| self.any(schema, depth + 1)).collect::<Result<Vec<_>, _>>().map(Value::Array)
    }

    /// Converts the properties that a request may have. Adds the names of `readOnly` properties to `hidden` instead.
    fn properties(&mut self, named: &'d Map<String, Value>, hidden: &mut HashSet<&'d str>, depth: usize) -> Result<Value, Obstacle> {
        let mut properties = Map::new();
        for (name, schema) in named {
            let read_only = |schema: &Value| schema.get("readOnly") == Some(&Value::Bool(true));
            if read_only(schema) || self.document.follow(schema).is_ok_and(read_only) {
                hidden.insert(name);
            } else {
                properties.insert(name.clone(), self.any(schema, depth + 1)?);
            }
        }
        Ok(Value::Object(properties))
    }

    fn named(&mut self, keyword: &str, named: &'d Map<String, Value>, depth: usize) -> Result<Value, Obstacle> {
        let mut schemas = Map::new();
        for (name, schema) in named {
            if keyword == "patternProperties" && !self.patterns.usable(name) {
                return Err(Obstacle::Reason("it has a property name pattern that cannot be matched in linear time".into()));
            }
            schemas.insert(name.clone(), self.any(schema, depth + 1)?);
        }
        Ok(Value::Object(schemas))
    }
}

#[cfg(test)]
mod tests;
