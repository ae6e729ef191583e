//! Schemas of a document as JSON Schema of a request: references resolved, the dialect of OpenAPI 3.0 translated.
//!
//! What is referred to is written out in place, because models read that best; what refers to itself becomes a
//! definition. Defaults become words: if Helve filled them in, a change of one field would reset the others.

mod combine;
mod nullable;

use std::collections::{HashMap, HashSet};

use helve_core::Schema;
use serde_json::{Map, Value, json};

pub(super) use self::nullable::without_null;
use super::Obstacle;
use super::document::Document;
use super::text::{READ_FOR_ONE, clean, sentence};

/// Schemas written out for one tool before references are used instead.
const MAX_INLINE: usize = 2_000;
/// Schemas of one tool altogether.
const MAX_SCHEMAS: usize = 10_000;
/// Schemas inside each other, written out; a level takes two levels of JSON, of which 64 are allowed.
const MAX_INLINE_DEPTH: usize = 28;
/// Schemas inside each other, references followed.
const MAX_DEPTH: usize = 100;
/// Characters of the description of a value.
const MAX_DESCRIPTION: usize = 400;
/// Characters of a default that is worth telling.
const MAX_DEFAULT: usize = 60;

/// Keywords that mean the same everywhere and hold no schema.
const COPIED: [&str; 17] = [
    "type", "enum", "const", "format", "multipleOf", "maximum", "minimum", "maxLength", "minLength", "maxItems", "minItems",
    "uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties", "dependentRequired",
];
/// Keywords that hold one schema.
const ONE: [&str; 11] = [
    "items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedItems",
    "unevaluatedProperties", "additionalItems",
];
/// Keywords that hold a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Which patterns can run in linear time, found out once for each.
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

/// Converts the schemas of one tool.
pub(super) struct Converter<'a, 'd> {
    document: &'a Document<'d>,
    patterns: &'a mut Patterns,
    /// Whether references are written out.
    inline: bool,
    /// How much was converted.
    work: usize,
    /// References that are being followed.
    open: Vec<&'d str>,
    /// References that were met while they were followed.
    recursive: HashSet<&'d str>,
    /// References that became definitions, and what those are called.
    names: HashMap<&'d str, String>,
    /// The names of definitions that are in use.
    taken: HashSet<String>,
    definitions: Map<String, Value>,
}

impl<'a, 'd> Converter<'a, 'd> {
    pub fn new(document: &'a Document<'d>, patterns: &'a mut Patterns, inline: bool) -> Self {
        let (recursive, names, taken) = (HashSet::new(), HashMap::new(), HashSet::new());
        Self { document, patterns, inline, work: 0, open: Vec::new(), recursive, names, taken, definitions: Map::new() }
    }

    /// The schema of a part of a request.
    pub fn convert(&mut self, schema: &'d Value) -> Result<Value, Obstacle> {
        self.any(schema, 0)
    }

    /// What a converted schema says, also where it is a reference to a definition.
    pub fn opened<'v>(&'v self, schema: &'v Value) -> &'v Value {
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix("#/$defs/"));
        name.and_then(|name| self.definitions.get(name)).unwrap_or(schema)
    }

    /// The definitions that the given schemas need.
    pub fn definitions<'v>(&self, schemas: impl IntoIterator<Item = &'v Value>) -> Map<String, Value> {
        let mut wanted = Vec::new();
        schemas.into_iter().for_each(|schema| references(schema, &mut wanted));
        let mut needed = HashSet::new();
        while let Some(name) = wanted.pop() {
            if let Some(definition) = self.definitions.get(&name)
                && needed.insert(name)
            {
                references(definition, &mut wanted);
            }
        }
        self.definitions.iter().filter(|(name, _)| needed.contains(*name)).map(|(name, schema)| (name.clone(), schema.clone())).collect()
    }

    fn any(&mut self, schema: &'d Value, depth: usize) -> Result<Value, Obstacle> {
        self.spend(1)?;
        match schema {
            Value::Bool(_) => Ok(schema.clone()),
            Value::Object(_) if self.inline && depth > MAX_INLINE_DEPTH => Err(Obstacle::TooLarge),
            Value::Object(_) if depth > MAX_DEPTH => Err(Obstacle::Reason("its schemas are nested too deep".into())),
            Value::Object(fields) => match fields.get("$ref") {
                Some(Value::String(reference)) => self.reference(reference, fields, depth),
                _ => Ok(Value::Object(finished(fields, self.keywords(fields, depth)?))),
            },
            _ => Err(Obstacle::Reason("one of its schemas is not a map".into())),
        }
    }

    fn spend(&mut self, work: usize) -> Result<(), Obstacle> {
        self.work += work;
        if self.work > if self.inline { MAX_INLINE } else { MAX_SCHEMAS } { Err(Obstacle::TooLarge) } else { Ok(()) }
    }

    /// A reference with what stands beside it, which holds as well.
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
        if is_open || self.names.get(reference).is_some_and(|name| self.definitions.contains_key(name)) {
            return Ok(json!({"$ref": format!("#/$defs/{}", self.definition_name(reference))}));
        }
        let target = self.document.target(reference)?;
        self.open.push(reference);
        let schema = self.any(target, depth + 1)?;
        self.open.pop();
        if self.inline && !self.recursive.contains(reference) {
            return Ok(schema);
        }
        let name = self.definition_name(reference);
        self.definitions.insert(name.clone(), schema);
        Ok(json!({"$ref": format!("#/$defs/{name}")}))
    }

    fn definition_name(&mut self, reference: &'d str) -> String {
        if let Some(name) = self.names.get(reference) {
            return name.clone();
        }
        let last = reference.rsplit('/').next().unwrap_or_default();
        let plain: String = last.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect();
        let plain = if plain.is_empty() { "schema".to_owned() } else { plain };
        let mut name = plain.clone();
        let mut number = self.names.len();
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{plain}_{number}");
        }
        self.names.insert(reference, name.clone());
        name
    }

    /// The keywords of a schema that say something about requests; all others are dropped.
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
                    // Cleaning is work too.
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

    /// The properties that a request may have; the server's own ones are hidden.
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
                return Err(Obstacle::Reason("it names properties by a pattern that cannot be checked in linear time".into()));
            }
            schemas.insert(name.clone(), self.any(schema, depth + 1)?);
        }
        Ok(Value::Object(schemas))
    }
}

/// What can be said only when all keywords are there.
fn finished(fields: &Map<String, Value>, schema: Map<String, Value>) -> Map<String, Value> {
    let mut schema = combine::merged(schema);
    if fields.get("nullable") == Some(&Value::Bool(true)) {
        schema = nullable::with_null(schema);
    }
    tell_default(fields, &mut schema);
    schema
}

/// Adds what must be given, without what only the server gives.
fn required(fields: &Map<String, Value>, hidden: &HashSet<&str>, schema: &mut Map<String, Value>) {
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

/// In OpenAPI 3.0 a bound is made exclusive by a flag beside it.
fn bounds(fields: &Map<String, Value>, schema: &mut Map<String, Value>) {
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if fields.get(flag) == Some(&Value::Bool(true))
            && let Some(value) = schema.shift_remove(bound)
        {
            schema.insert(flag.into(), value);
        }
    }
}

fn tell_default(fields: &Map<String, Value>, schema: &mut Map<String, Value>) {
    let Some(default) = fields.get("default").filter(|default| !default.is_null()) else { return };
    let written = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
    let known = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    if written.is_empty() || written.chars().count() > MAX_DEFAULT || known.to_lowercase().contains("default") {
        return;
    }
    let told = format!("{} Default: {}.", sentence(known), clean(&written, MAX_DEFAULT));
    schema.insert("description".into(), json!(told.trim_start()));
}

/// The names of the definitions that a schema refers to.
fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix("#/$defs/"));
            found.extend(name.map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
