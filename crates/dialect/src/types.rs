//! Determines the types of arguments: converts text to values by the tool's schema, and coerces values to it.

use serde_json::{Map, Value};

use crate::event::Mode;
use crate::json::{self, Syntax, json_number};
use crate::repair::{Repair, Repairs};
use crate::work;

/// Maximum depth of references and of coercion.
const MAX_STEPS: usize = 64;

/// The types that a schema allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a set of types")]
struct Allowed {
    string: bool,
    integer: bool,
    number: bool,
    boolean: bool,
    array: bool,
    object: bool,
    null: bool,
}

impl Allowed {
    const fn nothing(self) -> bool {
        !(self.string || self.integer || self.number || self.boolean || self.array || self.object || self.null)
    }

    fn add(&mut self, kind: &str) {
        match kind {
            "string" => self.string = true,
            "integer" => self.integer = true,
            "number" | "float" => self.number = true,
            "boolean" => self.boolean = true,
            "array" => self.array = true,
            "object" => self.object = true,
            "null" => self.null = true,
            _ => {}
        }
    }
}

/// Converts and coerces values by the schema of a tool's parameters.
pub(crate) struct Types<'a> {
    root: Option<&'a Value>,
    mode: Mode,
}

impl<'a> Types<'a> {
    pub fn new(root: Option<&'a Value>, mode: Mode) -> Self {
        Self { root, mode }
    }

    /// Returns the schema of one parameter.
    pub fn parameter(&self, name: &str) -> Option<&'a Value> {
        self.root.and_then(|root| property(self.follow(root), name))
    }

    /// Returns whether the tool may have this parameter. Returns true if the schema does not list the parameters.
    pub fn may_have(&self, name: &str) -> bool {
        match self.root.and_then(|root| self.follow(root).get("properties")) {
            Some(Value::Object(properties)) => properties.contains_key(name),
            _ => true,
        }
    }

    /// Returns whether a value of this schema may be a string, so that its white space is significant.
    pub fn keeps_text(&self, schema: Option<&Value>) -> bool {
        schema.is_some_and(|schema| self.allowed(schema).string)
    }

    /// Returns whether the schema allows an array but not a string.
    pub fn wants_array(&self, schema: Option<&Value>) -> bool {
        schema.is_some_and(|schema| {
            let allowed = self.allowed(schema);
            allowed.array && !allowed.string
        })
    }

    /// Returns the schema of the items of an array.
    pub fn items(&self, schema: Option<&'a Value>) -> Option<&'a Value> {
        schema.and_then(|schema| self.follow(schema).get("items"))
    }

    /// Returns the schema of a member of an object.
    pub fn member(&self, schema: Option<&'a Value>, name: &str) -> Option<&'a Value> {
        schema.and_then(|schema| property(self.follow(schema), name))
    }

    /// Converts an untyped text to a value by its schema.
    pub fn of_text(&self, text: &str, schema: Option<&'a Value>, repairs: &mut Repairs) -> Value {
        work::count(text.len());
        let Some(schema) = schema else { return untyped(text) };
        let allowed = self.allowed(schema);
        if allowed.nothing() {
            return self.choice(text, schema, repairs).unwrap_or_else(|| untyped(text));
        }
        if allowed.string {
            if allowed.null && self.mode.is_lenient() && text == "null" && !in_enum(schema, text) {
                repairs.add(Repair::NullText);
                return Value::Null;
            }
            return self.choice(text, schema, repairs).unwrap_or_else(|| Value::String(text.to_owned()));
        }
        let trimmed = text.trim();
        if let Some(value) = self.scalar(trimmed, allowed, repairs) {
            return value;
        }
        if allowed.array || allowed.object {
            if let Ok(reading) = json::read(trimmed, Syntax::Json, self.mode, 0)
                && (reading.value.is_array() && allowed.array || reading.value.is_object() && allowed.object)
            {
                repairs.join(reading.repairs);
                let mut value = reading.value;
                if self.mode.is_lenient() {
                    self.fit_value(&mut value, schema, repairs, MAX_STEPS);
                }
                return value;
            }
            let items = self.follow(schema).get("items");
            // If the items are lists, too, it is ambiguous how to wrap the value.
            if allowed.array && self.mode.is_lenient() && !trimmed.starts_with('[') && !self.wants_array(items) {
                repairs.add(Repair::WrappedInArray);
                return Value::Array(vec![self.of_text(trimmed, items, repairs)]);
            }
        }
        // The text does not match the schema. Validation will report it.
        Value::String(text.to_owned())
    }

    /// Converts a text to a value if the model marked it as a string or as JSON. If the schema requires another type, the schema wins.
    pub fn of_marked(&self, text: &str, string: bool, schema: Option<&'a Value>, repairs: &mut Repairs) -> Value {
        let allowed = schema.map(|schema| self.allowed(schema)).filter(|allowed| !allowed.nothing() && self.mode.is_lenient());
        match (string, allowed) {
            (true, Some(allowed)) if !allowed.string => self.of_text(text, schema, repairs),
            (true, _) => Value::String(text.to_owned()),
            (false, Some(allowed)) if allowed == (Allowed { string: true, ..Allowed::default() }) => self.of_text(text, schema, repairs),
            (false, _) => match json::read(text.trim(), Syntax::Json, self.mode, 0) {
                Ok(reading) => {
                    repairs.join(reading.repairs);
                    let mut value = reading.value;
                    if let (Some(schema), true) = (schema, self.mode.is_lenient()) {
                        self.fit_value(&mut value, schema, repairs, MAX_STEPS);
                    }
                    value
                }
                Err(_) => self.of_text(text, schema, repairs),
            },
        }
    }

    /// Converts a text to a boolean, number or null if the schema allows that type.
    fn scalar(&self, text: &str, allowed: Allowed, repairs: &mut Repairs) -> Option<Value> {
        match text {
            "true" if allowed.boolean => return Some(Value::Bool(true)),
            "false" if allowed.boolean => return Some(Value::Bool(false)),
            "null" if allowed.null => return Some(Value::Null),
            _ => {}
        }
        if (allowed.integer || allowed.number)
            && let Some(number) = json_number(text)
            && (allowed.number || !number.is_f64())
        {
            return Some(Value::Number(number));
        }
        if !self.mode.is_lenient() {
            return None;
        }
        let folded = match text {
            "True" | "TRUE" if allowed.boolean => Some(Value::Bool(true)),
            "False" | "FALSE" if allowed.boolean => Some(Value::Bool(false)),
            "None" if allowed.null => Some(Value::Null),
            _ if allowed.integer => whole(text),
            _ => None,
        };
        if folded.is_some() {
            repairs.add(Repair::Coerced);
        }
        folded
    }

    /// Returns the enum value of the schema that matches the text: exactly, or in another case if only one value matches.
    fn choice(&self, text: &str, schema: &Value, repairs: &mut Repairs) -> Option<Value> {
        let choices = self.follow(schema).get("enum")?.as_array()?;
        if let Some(exact) = choices.iter().find(|choice| choice.as_str() == Some(text)) {
            return Some(exact.clone());
        }
        if let Some(typed) = choices.iter().find(|choice| !choice.is_string() && *choice == text) {
            return Some(typed.clone());
        }
        if !self.mode.is_lenient() {
            return None;
        }
        let wanted = text.trim().to_lowercase();
        let mut fitting = choices.iter().filter(|choice| choice.as_str().is_some_and(|choice| choice.to_lowercase() == wanted));
        let only = fitting.next()?;
        if fitting.next().is_some() {
            return None;
        }
        repairs.add(Repair::FoldedEnum);
        Some(only.clone())
    }

    /// Coerces typed arguments to the schema. Does nothing in strict mode.
    pub fn fit(&self, arguments: &mut Map<String, Value>, repairs: &mut Repairs) {
        if !self.mode.is_lenient() || self.root.is_none() {
            return;
        }
        let Some(properties) = self.root.and_then(|root| member(self.follow(root), "properties")) else { return };
        for (name, value) in arguments.iter_mut() {
            if let Some(schema) = member(properties, name) {
                self.fit_value(value, schema, repairs, MAX_STEPS);
            }
        }
    }

    fn fit_value(&self, value: &mut Value, schema: &'a Value, repairs: &mut Repairs, steps: usize) {
        let allowed = self.allowed(schema);
        if steps == 0 || allowed.nothing() {
            return;
        }
        match value {
            Value::String(text) if allowed.string => {
                if allowed.null && text == "null" && !in_enum(schema, text) {
                    repairs.add(Repair::NullText);
                    *value = Value::Null;
                } else if let Some(choice) = self.choice(text, schema, repairs) {
                    *value = choice;
                }
            }
            Value::String(text) => {
                let before = *repairs;
                let fitting = self.of_text(text, Some(schema), repairs);
                if fitting.is_string() {
                    *repairs = before;
                } else {
                    repairs.add(Repair::Coerced);
                    *value = fitting;
                }
            }
            Value::Number(number) if allowed.string && !allowed.number && !allowed.integer => {
                repairs.add(Repair::Coerced);
                *value = Value::String(number.to_string());
            }
            Value::Array(items) if allowed.array => {
                if let Some(schema) = self.follow(schema).get("items") {
                    for item in items {
                        self.fit_value(item, schema, repairs, steps - 1);
                    }
                }
            }
            Value::Object(members) if allowed.object => {
                let schema = self.follow(schema);
                for (name, member) in members.iter_mut() {
                    if let Some(schema) = property(schema, name) {
                        self.fit_value(member, schema, repairs, steps - 1);
                    }
                }
            }
            Value::Number(_) | Value::Bool(_) | Value::Object(_)
                if allowed.array && !fits(value, allowed) && !self.wants_array(self.follow(schema).get("items")) =>
            {
                repairs.add(Repair::WrappedInArray);
                let mut only = std::mem::take(value);
                if let Some(schema) = self.follow(schema).get("items") {
                    self.fit_value(&mut only, schema, repairs, steps - 1);
                }
                *value = Value::Array(vec![only]);
            }
            _ => {}
        }
    }

    /// Returns the types that a schema allows.
    fn allowed(&self, schema: &Value) -> Allowed {
        let mut allowed = Allowed::default();
        self.collect(schema, &mut allowed, 4);
        allowed
    }

    fn collect(&self, schema: &Value, allowed: &mut Allowed, steps: usize) {
        let schema = self.follow(schema);
        match member(schema, "type") {
            Some(Value::String(kind)) => allowed.add(kind),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).for_each(|kind| allowed.add(kind)),
            _ if steps > 0 => {
                for key in ["anyOf", "oneOf", "allOf"] {
                    for alternative in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
                        self.collect(alternative, allowed, steps - 1);
                    }
                }
                let choices = schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
                allowed.string |= choices.into_iter().any(Value::is_string);
                if schema.get("properties").is_some() {
                    allowed.object = true;
                }
                if schema.get("items").is_some() {
                    allowed.array = true;
                }
            }
            _ => {}
        }
        if member(schema, "nullable") == Some(&Value::Bool(true)) {
            allowed.null = true;
        }
    }

    /// Resolves a reference to another part of the schema.
    fn follow<'s>(&self, mut schema: &'s Value) -> &'s Value
    where
        'a: 's,
    {
        for _ in 0..MAX_STEPS {
            let target = member(schema, "$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
            match target.and_then(|pointer| self.root?.pointer(pointer)) {
                Some(next) => schema = next,
                None => return schema,
            }
        }
        schema
    }
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    member(schema, "properties").and_then(|properties| member(properties, name))
}

/// Returns a member of an object. For objects with few members, comparing the keys is faster than hashing.
fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let map = value.as_object()?;
    if map.len() > 8 {
        return map.get(name);
    }
    map.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn in_enum(schema: &Value, text: &str) -> bool {
    member(schema, "enum").and_then(Value::as_array).is_some_and(|choices| choices.iter().any(|choice| choice.as_str() == Some(text)))
}

fn fits(value: &Value, allowed: Allowed) -> bool {
    match value {
        Value::Null => allowed.null,
        Value::Bool(_) => allowed.boolean,
        Value::Number(number) => allowed.number || (allowed.integer && !number.is_f64()),
        Value::String(_) => allowed.string,
        Value::Array(_) => allowed.array,
        Value::Object(_) => allowed.object,
    }
}

/// Parses an integer that is written with a fraction of zero, leading zeros or a plus sign.
fn whole(text: &str) -> Option<Value> {
    let digits = text.split_once('.').map_or(text, |(whole, fraction)| if fraction.bytes().all(|b| b == b'0') { whole } else { text });
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    digits.parse::<i64>().ok().map(Value::from)
}

/// Converts a text without a schema: `true`, `false` and JSON numbers become values, everything else a string with the exact text.
pub(crate) fn untyped(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => json_number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

/// Returns the JSON Schema name of a value's type.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
