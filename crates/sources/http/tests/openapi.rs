//! OpenAPI import through the public API, with the document of a fictitious code hosting service.
#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

#[path = "openapi/details.rs"]
mod details;
#[path = "openapi/filters.rs"]
mod filters;
#[path = "openapi/hostile.rs"]
mod hostile;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::LazyLock;

use helve_core::authored::FieldError;
use helve_core::{Permission, Redactor, Schema};
use helve_fetch::{Fetch, FetchOptions};
use helve_http::{HttpDefinition, Method, OpenApiDefinition, OpenApiImport, import};
use serde_json::{Value, json};

fn hosting() -> Value {
    serde_json::from_str(include_str!("openapi/hosting.json")).expect("JSON")
}

/// A definition with additional fields.
fn definition(fields: &Value) -> OpenApiDefinition {
    let mut whole = json!({"openapi": "hosting.json"});
    whole.as_object_mut().expect("a map").extend(fields.as_object().cloned().unwrap_or_default());
    serde_json::from_value(whole).expect("a definition")
}

fn import_with(fields: &Value, document: &Value) -> Result<OpenApiImport, FieldError> {
    import(&definition(fields), document)
}

fn whole() -> OpenApiImport {
    import_with(&json!({}), &hosting()).expect("tools")
}

/// A document with these paths and a server URL.
fn small(paths: &Value) -> Value {
    json!({"openapi": "3.1.0", "servers": [{"url": "https://x.example"}], "paths": paths})
}

fn tool<'i>(imported: &'i OpenApiImport, name: &str) -> &'i HttpDefinition {
    imported.tools.iter().find(|tool| tool.name == name).unwrap_or_else(|| panic!("no tool {name}: {:?}", imported.skipped))
}

fn names(imported: &OpenApiImport) -> Vec<&str> {
    imported.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn parameters(tool: &HttpDefinition) -> &Value {
    tool.parameters.as_ref().expect("parameters")
}

fn verb(method: Method) -> String {
    format!("{method:?}").to_uppercase()
}

/// Snapshots are next to the document.
fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("openapi/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// What must hold for every import.
fn check(imported: &OpenApiImport) {
    static FETCH: LazyLock<Fetch> = LazyLock::new(|| Fetch::new(FetchOptions::default()));
    let redactor = Redactor::default();
    let mut seen = BTreeSet::new();
    for tool in &imported.tools {
        let mut letters = tool.name.chars();
        let usable = letters.next().is_some_and(|first| first.is_ascii_lowercase())
            && letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
        assert!(usable && tool.name.len() <= 64, "{}", tool.name);
        assert!(seen.insert(&tool.name), "{} is there twice", tool.name);
        assert!(!tool.description.is_empty() && tool.description.chars().count() <= 1_001, "{}", tool.name);
        let schema = Schema::new(parameters(tool).clone()).expect("a schema that Helve takes");
        assert!(schema.describes_object());
        if let Err(error) = tool.tool("hosting.json", &FETCH, &redactor) {
            panic!("{} at {}: {error}", tool.name, error.path);
        }
        // Every argument is used, and every template has an argument.
        let mut used = templates(&json!([tool.api_url, tool.query, tool.headers, tool.body]));
        used.sort();
        used.dedup();
        let mut given: Vec<String> = parameters(tool)["properties"].as_object().expect("properties").keys().cloned().collect();
        given.sort();
        assert_eq!(used, given, "{}", tool.name);
    }
}

/// The arguments in the templates of a value.
fn templates(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => {
            text.split("{{ ").skip(1).filter_map(|rest| rest.split_once(" }}")).map(|(name, _)| name.to_owned()).collect()
        }
        Value::Array(items) => items.iter().flat_map(templates).collect(),
        Value::Object(fields) => fields.values().flat_map(templates).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_operation_is_imported_or_skipped_with_a_reason() {
    let (document, imported) = (hosting(), whole());
    check(&imported);
    let paths = document["paths"].as_object().expect("paths");
    let operations: usize =
        paths.values().map(|item| item.as_object().map_or(0, |item| item.len() - usize::from(item.contains_key("parameters")))).sum();
    assert_eq!(imported.tools.len() + imported.skipped.len(), operations);
    let mut list = String::new();
    for tool in &imported.tools {
        let required: Vec<&str> = parameters(tool)["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        writeln!(list, "{}  {} {}  {}", tool.name, verb(tool.method), tool.api_url, required.join(" ")).expect("text");
    }
    snapshot("list", &list);
    let skipped = imported.skipped.iter().map(|skipped| format!("{}: {}", skipped.operation, skipped.reason));
    let notes = imported.notes.iter().map(|note| format!("{}: {}", note.operation, note.message));
    snapshot("skipped", &skipped.collect::<Vec<_>>().join("\n"));
    snapshot("notes", &notes.collect::<Vec<_>>().join("\n"));
}

#[test]
fn reading_runs_and_writing_asks() {
    for tool in &whole().tools {
        let reads = matches!(tool.method, Method::Get | Method::Head);
        let expected = if reads { Permission::Auto } else { Permission::Confirm };
        assert_eq!((tool.rules.permission, tool.rules.idempotent), (Some(expected), reads), "{}", tool.name);
    }
    let rules = json!({"permission": "deny", "timeout": "5s", "cache": "1m", "retries": 2});
    let strict = import_with(&rules, &hosting()).expect("tools");
    for tool in &strict.tools {
        let reads = matches!(tool.method, Method::Get | Method::Head);
        assert_eq!((tool.rules.permission, tool.rules.retries), (Some(Permission::Deny), 2));
        // Two writes within a minute are two writes.
        assert_eq!(tool.rules.cache.is_some(), reads, "{}", tool.name);
    }
}

#[test]
fn interesting_operations_in_full() {
    let imported = whole();
    for name in [
        "repos_get",
        "repos_create_for_authenticated_user",
        "issues_list_for_repo",
        "issues_create_comment",
        "issues_update_label",
        "repos_update_branch_protection",
    ] {
        let tool = tool(&imported, name);
        let shown = json!({
            "title": tool.title, "description": tool.description, "method": verb(tool.method), "api_url": tool.api_url,
            "query": tool.query, "headers": tool.headers, "body": tool.body, "body_format": format!("{:?}", tool.body_format),
            "parameters": tool.parameters,
        });
        snapshot(name, &serde_json::to_string_pretty(&shown).expect("JSON"));
    }
}
