//! Converts JSON Schemas into forms that providers can enforce.

use serde_json::{Map, Value, json};

/// Keywords that Anthropic rejects. They are moved to the description, where the model reads them.
const UNENFORCED: [&str; 14] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
];
/// String formats that Anthropic accepts.
const FORMATS: [&str; 10] = ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// Keywords that OpenAI's strict mode accepts.
const STRICT: [&str; 18] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "description",
    "title",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

/// Converts a schema into the form that Anthropic requires: closes every object, and moves limits that Anthropic cannot enforce to the
/// description.
///
/// Closing an object only narrows the schema: except for the moved limits, a value that matches the result matches the original
/// schema. An open object without known properties stays open, because it could only be empty if it were closed. Anthropic rejects
/// such an object with an error that names it.
pub(crate) fn closed(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let (mut whole, mut unenforced) = (Map::new(), Vec::new());
    for (name, value) in fields {
        match name.as_str() {
            "$schema" => {}
            name if is_unenforced(name, value) => unenforced.push(format!("{name}: {value}")),
            "properties" | "$defs" | "definitions" => {
                whole.insert(name.clone(), of_each(value));
            }
            "items" => {
                whole.insert(name.clone(), closed(value));
            }
            // Anthropic supports `anyOf` but not `oneOf`.
            "anyOf" | "allOf" | "oneOf" => {
                let list = value.as_array().map(|list| list.iter().map(closed).collect());
                whole.insert(if name == "oneOf" { "anyOf" } else { name }.to_owned(), list.unwrap_or_else(|| value.clone()));
            }
            _ => {
                whole.insert(name.clone(), value.clone());
            }
        }
    }
    let open = fields.get("additionalProperties").is_some_and(|more| more != false);
    let known = fields.get("properties").and_then(Value::as_object);
    if known.is_some_and(|known| !known.is_empty() || !open) {
        whole.insert("additionalProperties".to_owned(), json!(false));
    }
    if !unenforced.is_empty() {
        let description = whole.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = format!("{description} ({})", unenforced.join(", "));
        whole.insert("description".to_owned(), json!(description.trim_start()));
    }
    Value::Object(whole)
}

/// Returns whether OpenAI accepts the schema in strict mode, the only mode in which OpenAI enforces schemas.
pub(crate) fn is_strict(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object") && fits(schema)
}

/// Returns whether a schema and its subschemas use only keywords of strict mode and closed objects.
fn fits(schema: &Value) -> bool {
    let Value::Object(fields) = schema else { return false };
    fields.iter().all(|(name, value)| match name.as_str() {
        "properties" | "$defs" => value.as_object().is_some_and(|map| map.values().all(fits)),
        "items" => fits(value),
        "anyOf" => value.as_array().is_some_and(|list| list.iter().all(fits)),
        "type" if value == "object" => is_closed(fields),
        "type" => !value.as_array().is_some_and(|kinds| kinds.contains(&json!("object"))) || is_closed(fields),
        name => STRICT.contains(&name),
    })
}

/// Returns whether an object schema requires all its properties and allows no others.
fn is_closed(fields: &Map<String, Value>) -> bool {
    let required = fields.get("required").and_then(Value::as_array);
    let known = fields.get("properties").and_then(Value::as_object);
    let all = known.is_some_and(|known| {
        known.keys().all(|name| required.is_some_and(|required| required.iter().any(|required| required == name.as_str())))
    });
    all && fields.get("additionalProperties").is_some_and(|more| more == false)
}

/// Returns whether Anthropic cannot enforce a keyword with this value.
fn is_unenforced(name: &str, value: &Value) -> bool {
    match name {
        "minItems" => value.as_u64().is_none_or(|least| least > 1),
        "format" => !value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        name => UNENFORCED.contains(&name),
    }
}

fn of_each(schemas: &Value) -> Value {
    let Value::Object(map) = schemas else { return schemas.clone() };
    map.iter().map(|(name, schema)| (name.clone(), closed(schema))).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_and_limits_become_words() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "minimum": {"type": "integer", "minimum": 1, "maximum": 5, "description": "How many."},
                "where": {"oneOf": [{"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": true}, {"type": "null"}]},
                "tags": {"type": "array", "minItems": 2, "items": {"type": "string", "format": "uuid"}},
                "none": {"type": "object", "properties": {}},
                "any": {"type": "object", "additionalProperties": true}
            }
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "minimum": {"type": "integer", "description": "How many. (minimum: 1, maximum: 5)"},
                "where": {"anyOf": [{"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": false}, {"type": "null"}]},
                "tags": {"type": "array", "items": {"type": "string", "format": "uuid"}, "description": "(minItems: 2)"},
                "none": {"type": "object", "properties": {}, "additionalProperties": false},
                "any": {"type": "object", "additionalProperties": true}
            },
            "additionalProperties": false
        });
        assert_eq!(closed(&schema), expected);
    }

    #[test]
    fn strict_is_what_is_closed_and_asks_for_everything() {
        let strict = json!({
            "type": "object",
            "properties": {"a": {"type": ["integer", "null"], "minimum": 1}, "b": {"type": "array", "items": {"type": "string"}}},
            "required": ["a", "b"],
            "additionalProperties": false
        });
        assert!(is_strict(&strict));
        let without = |at: &str, value: Value| {
            let mut schema = strict.clone();
            *schema.pointer_mut(at).expect("a place") = value;
            schema
        };
        assert!(!is_strict(&without("/required", json!(["a"]))), "an optional field");
        assert!(!is_strict(&without("/additionalProperties", json!(true))), "an open object");
        assert!(!is_strict(&without("/properties/b/items", json!({"type": "object"}))), "an open object inside");
        assert!(!is_strict(&without("/properties/b/items", json!({"type": "string", "maxLength": 3}))), "an unknown limit");
        assert!(!is_strict(&json!({"anyOf": [strict]})), "no object");
    }
}
