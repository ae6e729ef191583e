//! Coerces arguments of the wrong type, and fills in defaults.
//!
//! `"30"` becomes 30 if the schema only allows an integer. If the schema allows several conversions, or none, the value does not change,
//! and validation reports the problem.

use serde_json::{Map, Value};

use super::check::resolve;
use super::form::{Form, MAX_HOPS, forms, is_of_type};
use crate::json::{JsonLimits, integral, parse};

/// Maximum depth of the walk. Schemas can be recursive, but arguments are never deeper than this.
const MAX_DEPTH: usize = JsonLimits::ARGUMENTS.depth;

/// Facts about a schema that [`super::Schema::fit`] needs for every call, computed once.
pub(super) struct Shape {
    /// The names of all arguments, if the schema allows no others.
    known: Option<Vec<Box<str>>>,
    /// The names of the arguments that have a default.
    defaults: Vec<Box<str>>,
    /// Whether the top level refers to other schemas, so that the defaults must be looked up on each call.
    indirect: bool,
}

impl Shape {
    pub(super) fn of(schema: &Value) -> Self {
        let mut known = Vec::new();
        let closed = collect_known(schema, schema, &mut known, 0);
        let properties = || schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let has_default = |child: &&Value| child.get("default").is_some();
        let defaults = properties().filter(|(_, child)| has_default(child)).map(|(name, _)| name.as_str().into()).collect();
        let indirect = schema.get("$ref").is_some() || schema.get("allOf").is_some();
        Self { known: closed.then_some(known), defaults, indirect }
    }

    /// Returns whether there are unknown arguments. Cheap, because usually there are none.
    pub(super) fn has_unknown(&self, arguments: &Value) -> bool {
        let (Some(known), Value::Object(fields)) = (&self.known, arguments) else { return false };
        fields.keys().any(|name| !known.iter().any(|known| **known == **name))
    }

    /// Returns whether [`complete`] may change the arguments.
    pub(super) fn wants_more(&self, arguments: &Value) -> bool {
        self.indirect || self.defaults.iter().any(|name| arguments.get(&**name).is_none()) || has_whole_float(arguments)
    }

    /// Returns the names of all arguments, if the schema allows no others.
    pub(super) fn known(&self) -> Option<&[Box<str>]> {
        self.known.as_deref()
    }
}

/// Collects the names of the top-level arguments. Returns false if the schema allows others.
fn collect_known(root: &Value, schema: &Value, known: &mut Vec<Box<str>>, hops: usize) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    if hops > MAX_HOPS || fields.contains_key("patternProperties") {
        return false;
    }
    if fields.get("additionalProperties").or_else(|| fields.get("unevaluatedProperties")).is_some_and(|more| *more != Value::Bool(false)) {
        return false;
    }
    known.extend(fields.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str().into()));
    let mut parts: Vec<&Value> = Vec::new();
    for keyword in ["allOf", "anyOf", "oneOf"] {
        parts.extend(fields.get(keyword).and_then(Value::as_array).into_iter().flatten());
    }
    for keyword in ["if", "then", "else"] {
        parts.extend(fields.get(keyword));
    }
    parts.extend(fields.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten().map(|(_, part)| part));
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
        parts.extend(resolve(root, reference));
    }
    parts.into_iter().all(|part| part.is_boolean() || collect_known(root, part, known, hops + 1))
}

fn has_whole_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => integral(number).is_some(),
        Value::Array(items) => items.iter().any(has_whole_float),
        Value::Object(fields) => fields.values().any(has_whole_float),
        _ => false,
    }
}

/// Converts values of the wrong type if the schema allows exactly one conversion.
pub(super) fn coerce(root: &Value, arguments: &mut Value) {
    // Models often send null or an empty string if there are no arguments.
    if arguments.is_null() || arguments.as_str().is_some_and(|text| text.trim().is_empty()) {
        *arguments = Value::Object(Map::new());
    }
    walk(root, root, arguments, 0);
}

fn walk(root: &Value, schema: &Value, value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    let forms = forms(root, schema);
    if !forms.iter().any(|form| form.admits(value)) {
        let mut readings: Vec<Value> = Vec::new();
        for reading in forms.iter().filter_map(|form| read(form, value)) {
            if !readings.contains(&reading) {
                readings.push(reading);
            }
        }
        if readings.len() == 1
            && let Some(reading) = readings.pop()
        {
            *value = reading;
        }
    }
    // The inside can only be converted if exactly one form describes it.
    let mut admitting = forms.iter().filter(|form| form.admits(value));
    let (Some(form), None) = (admitting.next(), admitting.next()) else { return };
    match value {
        Value::Object(fields) => {
            let required = |name: &str| form.list("required").iter().any(|required| required.as_str() == Some(name));
            for (name, child) in form.properties() {
                let Some(field) = fields.get_mut(name) else { continue };
                walk(root, child, field, depth + 1);
                // Null for an optional argument that does not allow null can only mean that the argument is missing.
                if field.is_null() && !required(name) && !self::forms(root, child).iter().any(|form| form.admits(&Value::Null)) {
                    fields.shift_remove(name);
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = form.schema.get("items").filter(|child| child.is_object()) {
                for item in items {
                    walk(root, child, item, depth + 1);
                }
            }
        }
        _ => {}
    }
}

/// Adds defaults for missing arguments, and turns whole floats into integers if the schema requires integers.
///
/// Only top-level arguments get defaults: defaults inside of defaults would change an approved call when it is validated again.
pub(super) fn complete(root: &Value, arguments: &mut Value) {
    for form in forms(root, root).iter().filter(|form| form.is_only) {
        let Value::Object(fields) = &mut *arguments else { break };
        for (name, child) in form.properties() {
            if let (None, Some(default)) = (fields.get(name), child.get("default").filter(|default| !default.is_null())) {
                fields.insert(name.clone(), default.clone());
            }
        }
    }
    write_integers(root, root, arguments, 0);
}

fn write_integers(root: &Value, schema: &Value, value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    for form in forms(root, schema).iter().filter(|form| form.is_only) {
        match value {
            Value::Object(fields) => {
                for (name, child) in form.properties() {
                    if let Some(field) = fields.get_mut(name) {
                        write_integers(root, child, field, depth + 1);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(child) = form.schema.get("items") {
                    for item in items {
                        write_integers(root, child, item, depth + 1);
                    }
                }
            }
            Value::Number(number) => {
                if let Some(whole) = integral(number)
                    && form.types().any(|name| name == "integer")
                    && !form.types().any(|name| name == "number")
                {
                    *value = whole.into();
                }
            }
            _ => {}
        }
    }
}

/// Returns the value of this form that `value` can be converted to, if there is exactly one.
fn read(form: &Form<'_>, value: &Value) -> Option<Value> {
    let mut readings: Vec<Value> = match (form.schema.get("enum"), form.schema.get("const")) {
        (Some(Value::Array(options)), _) => options.iter().filter(|option| spells(option, value)).cloned().collect(),
        (_, Some(constant)) => std::iter::once(constant).filter(|constant| spells(constant, value)).cloned().collect(),
        _ => form.types().filter_map(|name| read_as(name, value)).collect(),
    };
    readings.dedup();
    if readings.len() == 1 { readings.pop() } else { None }
}

/// Returns whether one of the two values is the text of the other, such as `"3"` and 3.
fn spells(option: &Value, value: &Value) -> bool {
    let ((Value::String(text), scalar @ (Value::Number(_) | Value::Bool(_)))
    | (scalar @ (Value::Number(_) | Value::Bool(_) | Value::Null), Value::String(text))) = (option, value)
    else {
        return false;
    };
    let written = scalar.to_string();
    *text == written
}

/// Converts a value to the type `name`, if there is exactly one way.
fn read_as(name: &str, value: &Value) -> Option<Value> {
    match (name, value) {
        ("string", Value::Bool(_)) => Some(value.to_string().into()),
        // `1.50` was already parsed as 1.5, so only integers still have their original spelling.
        ("string", Value::Number(number)) if !number.is_f64() => Some(value.to_string().into()),
        (_, Value::String(text)) => {
            let text = text.trim();
            let may_be = match name {
                "integer" | "number" | "boolean" | "null" => true,
                "array" => text.starts_with('['),
                "object" => text.starts_with('{'),
                _ => false,
            };
            let read = may_be.then(|| parse(text.as_bytes(), JsonLimits::ARGUMENTS).ok())??;
            is_of_type(name, &read).then_some(read)
        }
        _ => None,
    }
}
