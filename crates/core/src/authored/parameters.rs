//! Reads the parameters of a tool file: a list in the short form, or a JSON Schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::FieldError;
use crate::schema::{Schema, SchemaError};
use crate::suggest;

const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];
const FIELDS: [&str; 7] = ["name", "type", "description", "required", "default", "enum", "items"];

/// One parameter in the short form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The name of the argument.
    pub name: String,
    /// The type: `string`, `integer`, `number`, `boolean`, `array` or `object`. By default `string`.
    #[serde(default = "string", rename = "type")]
    pub kind: String,
    /// The description for the model.
    #[serde(default)]
    pub description: String,
    /// Whether the argument is required. By default it is, unless the parameter has a default value.
    pub required: Option<bool>,
    /// The value if the argument is missing.
    pub default: Option<Value>,
    /// The allowed values of the argument.
    #[serde(rename = "enum")]
    pub options: Option<Vec<Value>>,
    /// The type of the items, for arrays.
    pub items: Option<String>,
}

fn string() -> String {
    "string".to_owned()
}

/// Reads the field `parameters` of a tool file, found at `path`. If the field is missing, the tool has no parameters.
///
/// # Errors
/// If the list or the schema has a mistake. The error contains the path of the field.
pub fn read_parameters(parameters: Option<&Value>, path: &str) -> Result<Schema, FieldError> {
    match parameters {
        None | Some(Value::Null) => Ok(closed(&Map::new(), &[])),
        Some(Value::Array(list)) => read_list(list, path),
        Some(schema @ Value::Object(_)) => Schema::new(schema.clone()).map_err(|error| match error {
            SchemaError::Invalid { at, message } => FieldError::new(format!("{path}{}", at.trim_end_matches('/')), message),
            other => FieldError::new(path, other.to_string()),
        }),
        Some(_) => Err(FieldError::new(path, "`parameters` must be a list or a JSON Schema").hint(EXAMPLE)),
    }
}

const EXAMPLE: &str = "write `- {name: query, type: string, description: words}`, or a schema with `type: object`";

fn read_list(list: &[Value], path: &str) -> Result<Schema, FieldError> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let at = |field: &str| format!("{path}/{index}{field}");
        let Some(fields) = value.as_object() else {
            return Err(FieldError::new(at(""), "a parameter must be a map with a `name`").hint(EXAMPLE));
        };
        if let Some(unknown) = fields.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            let hint = suggest::nearest(unknown, FIELDS).map(|near| format!("did you mean `{near}`?"));
            let error = FieldError::new(at(&format!("/{unknown}")), format!("unknown field `{unknown}` of a parameter"));
            return Err(error.hint(hint.unwrap_or_else(|| format!("the fields of a parameter are {}", FIELDS.join(", ")))));
        }
        let parameter: Parameter = serde_json::from_value(value.clone()).map_err(|error| FieldError::new(at(""), error.to_string()))?;
        if parameter.name.is_empty() {
            return Err(FieldError::new(at("/name"), "the parameter has an empty name"));
        }
        for (field, kind) in [("/type", Some(&parameter.kind)), ("/items", parameter.items.as_ref())] {
            let Some(kind) = kind.filter(|kind| !TYPES.contains(&kind.as_str())) else { continue };
            let near = suggest::nearest(kind, TYPES)
                .map_or_else(|| format!("the types are {}", TYPES.join(", ")), |near| format!("did you mean `{near}`?"));
            return Err(FieldError::new(at(field), format!("there is no type `{kind}`")).hint(near));
        }
        let must = parameter.required.unwrap_or(parameter.default.is_none());
        let schema = property(&parameter);
        if let Some(default) = &parameter.default
            && !Schema::new(schema.clone()).is_ok_and(|schema| schema.is_valid(default))
        {
            return Err(FieldError::new(at("/default"), format!("the default {default} is not a valid value of the parameter")));
        }
        if must {
            required.push(json!(parameter.name));
        }
        if properties.insert(parameter.name.clone(), schema).is_some() {
            return Err(FieldError::new(at("/name"), format!("duplicate parameter `{}`", parameter.name)));
        }
    }
    Ok(closed(&properties, &required))
}

fn property(parameter: &Parameter) -> Value {
    let mut schema = json!({"type": parameter.kind});
    if !parameter.description.is_empty() {
        schema["description"] = json!(parameter.description);
    }
    if let Some(options) = &parameter.options {
        schema["enum"] = json!(options);
    }
    if let Some(items) = &parameter.items {
        schema["items"] = json!({"type": items});
    }
    if let Some(default) = &parameter.default {
        schema["default"] = default.clone();
    }
    schema
}

fn closed(properties: &Map<String, Value>, required: &[Value]) -> Schema {
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Schema::trusted(schema)
}

/// Returns the JSON Schema of the field `parameters` itself, for editors and `#[schemars(schema_with = …)]`.
pub fn parameters_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let list = generator.subschema_for::<Vec<Parameter>>();
    schemars::json_schema!({
        "description": "The arguments of the tool: a list in the short form, or a JSON Schema of an object.",
        "anyOf": [list, {"type": "object", "description": "A JSON Schema."}, {"type": "null"}]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> Result<Value, (String, String)> {
        read_parameters(Some(value), "/parameters").map(|schema| schema.value().clone()).map_err(|error| {
            let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            (error.path, error.message + &hint)
        })
    }

    #[test]
    fn the_short_form_becomes_a_schema() {
        let schema = read(&json!([
            {"name": "query", "type": "string", "description": "words", "required": true},
            {"name": "count", "type": "integer", "default": 10},
            {"name": "order", "enum": ["newest", "oldest"], "required": false},
            {"name": "tags", "type": "array", "items": "string"},
        ]));
        assert_eq!(
            schema,
            Ok(json!({"type": "object", "properties": {
                "query": {"type": "string", "description": "words"},
                "count": {"type": "integer", "default": 10},
                "order": {"type": "string", "enum": ["newest", "oldest"]},
                "tags": {"type": "array", "items": {"type": "string"}}},
                "additionalProperties": false, "required": ["query", "tags"]}))
        );
        assert_eq!(read(&json!({"type": "object"})), Ok(json!({"type": "object"})));
        assert!(read_parameters(None, "/parameters").is_ok());
    }

    #[test]
    fn mistakes_are_found_where_they_are() {
        for (value, path, message) in [
            (json!("x"), "/parameters", "`parameters` must be a list or a JSON Schema"),
            (json!(["x"]), "/parameters/0", "a parameter must be a map with a `name`"),
            (json!([{"name": "a", "typ": "string"}]), "/parameters/0/typ", "unknown field `typ` of a parameter (did you mean `type`?)"),
            (
                json!([{"name": "a"}, {"name": "b", "type": "strin"}]),
                "/parameters/1/type",
                "there is no type `strin` (did you mean `string`?)",
            ),
            (json!([{"type": "string"}]), "/parameters/0", "missing field `name`"),
            (json!([{"name": "a"}, {"name": "a"}]), "/parameters/1/name", "duplicate parameter `a`"),
            (
                json!([{"name": "a", "type": "integer", "default": "x"}]),
                "/parameters/0/default",
                "the default \"x\" is not a valid value of the parameter",
            ),
            (json!({"type": "objekt"}), "/parameters/type", "there is no type `objekt`; did you mean `object`?"),
        ] {
            let (at, what) = read(&value).expect_err("a mistake");
            assert_eq!(at, path, "{value}");
            assert!(what.starts_with(message.split(" (").next().unwrap_or_default()), "{value}: {what}");
            assert!(!message.contains(" (did") || what == message, "{value}: {what}");
        }
    }
}
