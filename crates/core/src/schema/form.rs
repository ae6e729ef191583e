//! Lists the alternatives of a schema, with references resolved.

use serde_json::Value;

use super::check::resolve;

/// Maximum length of a chain of references.
pub(super) const MAX_HOPS: usize = 16;
/// Maximum number of alternatives to consider.
const MAX_FORMS: usize = 64;

/// One alternative of a schema.
pub(super) struct Form<'s> {
    pub(super) schema: &'s Value,
    /// Whether this is the only alternative, so that it describes every value.
    pub(super) is_only: bool,
}

/// Returns the alternatives of a schema. A schema without alternatives is its own only one, after resolving its reference.
pub(super) fn forms<'s>(root: &'s Value, schema: &'s Value) -> Vec<Form<'s>> {
    let mut found = Vec::new();
    gather(root, schema, &mut found, 0);
    let is_only = found.len() == 1;
    found.into_iter().map(|schema| Form { schema, is_only }).collect()
}

fn gather<'s>(root: &'s Value, schema: &'s Value, found: &mut Vec<&'s Value>, hops: usize) {
    if hops > MAX_HOPS || found.len() >= MAX_FORMS {
        return;
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(root, reference)) {
        return gather(root, target, found, hops + 1);
    }
    let own = schema.get("type").is_some() || schema.get("enum").is_some() || schema.get("properties").is_some();
    // Generators use an `allOf` with one part to add a description to a reference. The parts of a longer `allOf` are not alternatives.
    let alternatives = ["anyOf", "oneOf", "allOf"]
        .into_iter()
        .find_map(|keyword| schema.get(keyword).and_then(Value::as_array).filter(|list| keyword != "allOf" || list.len() == 1));
    match alternatives {
        Some(list) if !own => list.iter().for_each(|child| gather(root, child, found, hops + 1)),
        _ => found.push(schema),
    }
}

impl<'s> Form<'s> {
    pub(super) fn types(&self) -> impl Iterator<Item = &'s str> {
        let names = match self.schema.get("type") {
            Some(Value::Array(names)) => names.as_slice(),
            Some(name) => std::slice::from_ref(name),
            None => &[],
        };
        names.iter().filter_map(Value::as_str)
    }

    pub(super) fn list(&self, keyword: &str) -> &'s [Value] {
        self.schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn properties(&self) -> impl Iterator<Item = (&'s String, &'s Value)> {
        self.schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    }

    /// Returns whether a value has an allowed type and an allowed constant.
    pub(super) fn admits(&self, value: &Value) -> bool {
        let listed = self.schema.get("enum").is_none() || self.list("enum").contains(value);
        let constant = self.schema.get("const").is_none_or(|constant| constant == value);
        let mut types = self.types().peekable();
        let type_fits = types.peek().is_none() || types.any(|name| is_of_type(name, value));
        listed && constant && type_fits
    }

    /// Returns whether all properties with a constant have that value. Such properties distinguish alternatives.
    pub(super) fn constants_fit(&self, value: &Value) -> bool {
        self.properties().all(|(name, child)| match (child.get("const"), value.get(name)) {
            (Some(constant), Some(field)) => constant == field,
            (Some(_), None) => false,
            (None, _) => true,
        })
    }
}

/// Returns whether a value has the JSON Schema type `name`.
pub(super) fn is_of_type(name: &str, value: &Value) -> bool {
    match (name, value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_))
        | ("number", Value::Number(_)) => true,
        ("integer", Value::Number(number)) => !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0),
        _ => false,
    }
}
