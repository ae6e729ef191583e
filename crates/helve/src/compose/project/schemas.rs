//! The JSON Schemas of project files.

use helve_core::Schema;
use helve_project::{AgentFile, HelveFile, SetFile};
use serde_json::{Map, Value, json};

/// Returns the JSON Schemas of project files, by kind: `helve`, `command`, `native`, `openapi`, `mcp`, `set`, `agent`.
#[must_use]
pub fn file_schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("helve", Schema::of::<HelveFile>()),
        ("command", Schema::of::<helve_command::CommandDefinition>()),
        ("native", Schema::of::<helve_http::HttpDefinition>()),
        ("openapi", Schema::of::<helve_http::OpenApiDefinition>()),
        ("mcp", either(&Schema::of::<helve_mcp::McpDefinition>(), &Schema::of::<helve_http::RemoteDefinition>())),
        ("set", Schema::of::<SetFile>()),
        ("agent", Schema::of::<AgentFile>()),
    ]
}

/// Returns the schema of a file that has one of two forms.
fn either(one: &Schema, other: &Schema) -> Schema {
    let mut definitions = Map::new();
    let kinds = [one, other].map(|schema| {
        let mut kind = schema.value().clone();
        if let Some(fields) = kind.as_object_mut() {
            // `$ref`s resolve from the root of the document.
            if let Some(Value::Object(own)) = fields.remove("$defs") {
                definitions.extend(own);
            }
            fields.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        kind
    });
    let both = json!({"type": "object", "anyOf": kinds, "$defs": definitions, "additionalProperties": true});
    Schema::new(both).unwrap_or_else(|_| one.clone())
}
