//! Writes the JSON Schema of a message, for servers with constrained decoding.

use serde_json::{Map, Value, json};

use super::{Choice, PromptTool};

/// Keywords whose value is data, in which `$ref` is not a reference.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Keywords whose value maps names to schemas.
const NAMED: [&str; 6] = ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];
/// Keywords that would change the meaning of a reference. They are removed.
const BASES: [&str; 6] = ["$id", "id", "$schema", "$anchor", "$dynamicAnchor", "$vocabulary"];

pub(super) fn write(tools: &[&PromptTool<'_>], choice: Choice<'_>) -> Value {
    let answer = object(&json!({"answer": {"type": "string"}}));
    if tools.is_empty() {
        return answer;
    }
    let mut definitions = Map::new();
    let mut alternatives = Vec::with_capacity(tools.len());
    for (index, tool) in tools.iter().enumerate() {
        // Unlike a tool name, a number needs no escaping in a reference.
        let key = format!("tool_{}", index + 1);
        alternatives.push(object(&json!({
            "id": {"type": "string"},
            "name": {"type": "string", "const": tool.name},
            "parameters": {"$ref": format!("#/$defs/{key}")},
        })));
        definitions.insert(key.clone(), moved(tool.parameters, &key));
    }
    let items = if alternatives.len() == 1 { alternatives.remove(0) } else { json!({"anyOf": alternatives}) };
    let calls = object(&json!({"tool_calls": {"type": "array", "minItems": 1, "items": items}}));
    let mut schema = match choice {
        Choice::Required | Choice::Only(_) => calls,
        Choice::Auto | Choice::None => json!({"anyOf": [calls, answer]}),
    };
    schema["$defs"] = Value::Object(definitions);
    schema
}

/// Returns the text in `{"answer": "…"}`, the form that [`super::Prompt::schema`] requires. Returns `None` for any other message.
///
/// ```
/// use helve_dialect::answer_text;
///
/// assert_eq!(answer_text(r#" {"answer": "It is sunny."} "#).as_deref(), Some("It is sunny."));
/// assert_eq!(answer_text("It is sunny."), None);
/// ```
#[must_use]
pub fn answer_text(message: &str) -> Option<String> {
    let mut members: Map<String, Value> = serde_json::from_str(message.trim()).ok()?;
    match (members.len(), members.remove("answer")) {
        (1, Some(Value::String(text))) => Some(text),
        _ => None,
    }
}

/// Returns the schema of an object with exactly these members, all required.
fn object(properties: &Value) -> Value {
    let required: Vec<Value> = properties.as_object().into_iter().flat_map(Map::keys).map(|key| json!(key)).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Returns a tool's schema with its references adjusted to the new location of the schema.
fn moved(schema: &Value, key: &str) -> Value {
    let Value::Object(members) = schema else { return json!({"type": "object"}) };
    let own = members.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
    let mut moved = turn(schema, &Turn { root: schema, own, key });
    if let Value::Object(members) = &mut moved
        && !["type", "$ref", "anyOf", "oneOf", "allOf"].iter().any(|keyword| members.contains_key(*keyword))
    {
        members.insert("type".to_owned(), json!("object"));
    }
    moved
}

/// The old and the new location of a tool's schema.
struct Turn<'a> {
    root: &'a Value,
    /// The `$id` of the schema.
    own: Option<&'a str>,
    key: &'a str,
}

impl Turn<'_> {
    /// Returns the adjusted reference, or `None` if it does not point into the tool's schema.
    fn reference(&self, reference: &str) -> Option<Value> {
        let inside = reference.strip_prefix('#').or_else(|| reference.strip_prefix(self.own?)?.strip_prefix('#'))?;
        self.root.pointer(inside)?;
        Some(json!(format!("#/$defs/{}{inside}", self.key)))
    }
}

/// Adjusts the references in a schema, and removes keywords that would change their meaning.
fn turn(schema: &Value, place: &Turn<'_>) -> Value {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => return items.iter().map(|item| turn(item, place)).collect(),
        other => return other.clone(),
    };
    let mut turned = Map::with_capacity(members.len());
    for (keyword, value) in members {
        let value = match (keyword.as_str(), value) {
            ("$ref", Value::String(reference)) => match place.reference(reference) {
                Some(reference) => reference,
                None => continue,
            },
            (keyword, Value::String(_)) if BASES.contains(&keyword) => continue,
            (keyword, Value::Object(named)) if NAMED.contains(&keyword) => {
                named.iter().map(|(name, schema)| (name.clone(), turn(schema, place))).collect()
            }
            (keyword, value) if DATA.contains(&keyword) => value.clone(),
            (_, value) => turn(value, place),
        };
        turned.insert(keyword.clone(), value);
    }
    turned.into()
}
