//! `helve schema`: prints the JSON Schemas of project files, for editors.

use std::process::ExitCode;

use helve::tool::Schema;
use serde_json::{Map, Value, json};

use crate::cli::Global;
use crate::failure::Failure;
use crate::terminal::{self, FAINT, STRONG, styled};

/// The kinds of files, and their locations in a project.
const KINDS: [(&str, &str); 7] = [
    ("helve", "helve.yaml"),
    ("command", "tools/builtin/*.yaml"),
    ("native", "tools/native/*.yaml"),
    ("openapi", "tools/native/*.yaml with `openapi`"),
    ("mcp", "tools/mcp/*.yaml"),
    ("set", "tool_sets/*.yaml"),
    ("agent", "agents/*.yaml"),
];

/// Prints one schema, or lists the kinds.
pub fn run(kind: Option<&str>, global: &Global) -> Result<ExitCode, Failure> {
    let schemas = helve::project::file_schemas();
    let Some(kind) = kind else {
        if global.json {
            let all: Map<String, Value> = schemas.iter().map(|(name, schema)| ((*name).to_owned(), document(name, schema))).collect();
            terminal::json(Value::Object(all));
        } else {
            for (name, place) in KINDS {
                terminal::print(&format!("{} {}", styled(STRONG, &format!("{name:<8}")), styled(FAINT, place)));
            }
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some((name, schema)) = schemas.iter().find(|(name, _)| *name == kind) else {
        let names: Vec<_> = schemas.iter().map(|(name, _)| *name).collect();
        let all = format!("kinds are {}", names.join(", "));
        return Err(Failure::usage(format_args!("there is no kind of file `{kind}`")).suggest(kind, names, &all));
    };
    terminal::print(&serde_json::to_string_pretty(&document(name, schema)).unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}

/// Returns a schema for editors. The schema allows no additional properties, so that editors mark unknown fields.
fn document(name: &str, schema: &Schema) -> Value {
    let mut document = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": format!("Helve: {name}")});
    if let (Some(document), Value::Object(fields)) = (document.as_object_mut(), schema.value()) {
        document.extend(fields.clone());
        document.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    document
}
