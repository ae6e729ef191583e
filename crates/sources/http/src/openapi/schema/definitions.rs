//! The definitions (`$defs`) of the input schema of a tool.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

/// The definitions of a tool, and their names by the references in the document.
#[derive(Default)]
pub(super) struct Definitions<'d> {
    names: HashMap<&'d str, String>,
    taken: HashSet<String>,
    schemas: Map<String, Value>,
}

impl<'d> Definitions<'d> {
    /// Returns whether a reference in the document has a definition.
    pub fn has(&self, reference: &str) -> bool {
        self.names.get(reference).is_some_and(|name| self.schemas.contains_key(name))
    }

    /// Returns the definition with this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.schemas.get(name)
    }

    /// Adds the definition for a reference in the document. Returns a schema that refers to the definition.
    pub fn define(&mut self, reference: &'d str, schema: Value) -> Value {
        let name = self.name(reference);
        self.schemas.insert(name, schema);
        self.reference(reference)
    }

    /// Returns a schema that refers to the definition for a reference in the document. The definition may be added later.
    pub fn reference(&mut self, reference: &'d str) -> Value {
        json!({"$ref": format!("#/$defs/{}", self.name(reference))})
    }

    /// Returns the definitions that the schemas need, directly or indirectly.
    pub fn needed<'v>(&self, schemas: impl IntoIterator<Item = &'v Value>) -> Map<String, Value> {
        let mut wanted = Vec::new();
        schemas.into_iter().for_each(|schema| collect(schema, &mut wanted));
        let mut needed = HashSet::new();
        while let Some(name) = wanted.pop() {
            if let Some(schema) = self.schemas.get(&name)
                && needed.insert(name)
            {
                collect(schema, &mut wanted);
            }
        }
        let kept = self.schemas.iter().filter(|(name, _)| needed.contains(*name));
        kept.map(|(name, schema)| (name.clone(), schema.clone())).collect()
    }

    fn name(&mut self, reference: &'d str) -> String {
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
}

/// Returns the name of the definition that a schema refers to, or `None` if the schema is not a reference.
pub(super) fn referred(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)?.strip_prefix("#/$defs/")
}

fn collect(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            found.extend(referred(schema).map(str::to_owned));
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
