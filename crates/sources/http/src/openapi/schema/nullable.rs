//! Adds null to schemas, and removes it. OpenAPI 3.0 expresses null by a flag, JSON Schema by a type.

use serde_json::{Map, Value, json};

/// Keywords that could forbid null even if `type` allows it.
const STRICT: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "not", "const", "if"];

/// Returns a schema that also allows null.
pub(super) fn with_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    if STRICT.iter().any(|keyword| schema.contains_key(*keyword)) {
        let description = schema.shift_remove("description");
        let mut outer = Map::new();
        outer.insert("anyOf".into(), json!([schema, {"type": "null"}]));
        outer.extend(description.map(|description| ("description".into(), description)));
        return outer;
    }
    match schema.get_mut("type") {
        Some(Value::Array(types)) if !types.contains(&json!("null")) => types.push(json!("null")),
        Some(name @ Value::String(_)) if *name != "null" => *name = json!([name, "null"]),
        _ => {}
    }
    if let Some(Value::Array(options)) = schema.get_mut("enum")
        && !options.contains(&Value::Null)
    {
        options.push(Value::Null);
    }
    schema
}

/// Returns the schema without null, which URLs and headers cannot express.
pub(in crate::openapi) fn without_null(mut schema: Value) -> Value {
    let Some(fields) = schema.as_object_mut() else { return schema };
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            fields["type"] = only.clone();
        }
    }
    if let Some(Value::Array(options)) = fields.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(choices)) = fields.get_mut(keyword) else { continue };
        choices.retain(|choice| choice.get("type") != Some(&json!("null")));
        let [Value::Object(only)] = choices.as_slice() else { continue };
        let mut only = only.clone();
        if only.keys().all(|key| key == "description" || !fields.contains_key(key)) {
            fields.shift_remove(keyword);
            only.extend(std::mem::take(fields));
            *fields = only;
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nullable(value: &Value) -> Value {
        Value::Object(with_null(value.as_object().cloned().unwrap_or_default()))
    }

    #[test]
    fn null_is_a_type_or_a_choice() {
        for (plain, with) in [
            (json!({"type": "string"}), json!({"type": ["string", "null"]})),
            (json!({"type": "string", "enum": ["a"]}), json!({"type": ["string", "null"], "enum": ["a", null]})),
            (
                json!({"$ref": "#/$defs/a", "description": "d"}),
                json!({"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "description": "d"}),
            ),
        ] {
            assert_eq!(nullable(&plain), with);
            assert_eq!(without_null(with), plain);
        }
        assert_eq!(nullable(&json!({})), json!({}));
    }
}
