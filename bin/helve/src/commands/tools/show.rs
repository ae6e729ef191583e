//! `helve tools show`: describes one tool.

use std::process::ExitCode;

use helve::catalogue::Entry;
use helve::internal::printable;
use helve::permission::Permission;
use serde_json::Value;

use super::list;
use crate::cli::Global;
use crate::failure::Failure;
use crate::terminal::{self, FAINT, STRONG, styled};
use crate::workspace::Workspace;

/// Prints the description of one tool.
pub fn run(name: &str, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let entry = super::find(name, workspace)?;
    if global.json {
        terminal::json(list::describe(&entry, workspace.helve()));
        return Ok(ExitCode::SUCCESS);
    }
    for line in lines(&entry, workspace.helve().executor().permission(&entry)) {
        terminal::print(&line);
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(entry: &Entry, permission: Permission) -> Vec<String> {
    let spec = entry.spec();
    let rules = spec.rules();
    let mut lines = vec![styled(STRONG, &printable::escape_line(entry.name()))];
    // Indented, so that a description cannot imitate Helve's own output.
    lines.extend(printable::escape(spec.description()).lines().map(|line| format!("  {line}")));
    lines.push(String::new());
    let mut fact = |word: &str, value: String| lines.push(format!("{}  {value}", styled(FAINT, &format!("{word:>10}"))));
    if entry.model_name() != entry.name() {
        fact("model name", entry.model_name().to_string());
    }
    let location = spec.origin().location.as_deref().map(|location| format!(", {}", printable::escape_line(location))).unwrap_or_default();
    fact("source", format!("{} ({}{location})", printable::escape_line(entry.source().as_str()), spec.origin().kind.name()));
    fact("permission", styled(list::permission_style(permission), permission.name()));
    fact("mode", rules.mode.name().to_owned());
    fact("timeout", format!("{:?}", rules.attempt_timeout()));
    let mut traits = Vec::new();
    traits.extend(rules.idempotent.then(|| "idempotent".to_owned()));
    traits.extend(rules.exclusive.then(|| "exclusive".to_owned()));
    traits
        .extend((rules.retries > 0).then(|| if rules.retries == 1 { "1 retry".to_owned() } else { format!("{} retries", rules.retries) }));
    traits.extend(rules.cache.map(|cache| format!("cached for {:?}", cache.ttl)));
    traits.extend(rules.concurrency.map(|most| format!("at most {most} concurrent")));
    if !traits.is_empty() {
        fact("rules", traits.join(", "));
    }
    for duplicate in entry.duplicates() {
        fact("duplicate", format!("in {}, not used", printable::escape_line(duplicate.source.as_str())));
    }
    lines.extend(parameters(spec.input().value()));
    lines.push(String::new());
    lines.push(format!("{}  {}", styled(FAINT, &format!("{:>10}", "example")), example(entry)));
    lines
}

fn parameters(schema: &Value) -> Vec<String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty()) else {
        return vec![String::new(), "No parameters.".to_owned()];
    };
    let mut lines = vec![String::new(), styled(STRONG, "Parameters")];
    for (name, parameter) in properties {
        let need = match (is_required(schema, name), parameter.get("default")) {
            (true, _) => "required".to_owned(),
            (false, Some(default)) if !default.is_null() => printable::escape_line(&format!("default {default}")),
            (false, _) => "optional".to_owned(),
        };
        lines.push(format!(
            "  {} {}",
            styled(STRONG, &printable::escape_line(name)),
            styled(FAINT, &format!("{}, {need}", kind(parameter)))
        ));
        if let Some(description) = parameter.get("description").and_then(Value::as_str) {
            lines.extend(printable::escape(description).lines().map(|line| format!("      {line}")));
        }
    }
    lines
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|required| required == name))
}

/// Returns the type of a parameter, or its allowed values.
fn kind(parameter: &Value) -> String {
    if let Some(options) = parameter.get("enum").and_then(Value::as_array) {
        return printable::escape_line(&options.iter().map(Value::to_string).collect::<Vec<_>>().join(" | "));
    }
    let of = |name: &str| match (name, parameter.pointer("/items/type").and_then(Value::as_str)) {
        ("array", Some(items)) => format!("array of {items}"),
        _ => name.to_owned(),
    };
    match parameter.get("type") {
        Some(Value::String(name)) => printable::escape_line(&of(name)),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).filter(|name| *name != "null").map(of).collect::<Vec<_>>().join(" | ")
        }
        _ => "any".to_owned(),
    }
}

/// Returns an example command with the required parameters.
fn example(entry: &Entry) -> String {
    let schema = entry.spec().input().value();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let arguments = properties.filter(|(name, _)| is_required(schema, name)).map(|(name, parameter)| {
        let value = match parameter.get("enum").and_then(|options| options.get(0)) {
            Some(Value::String(option)) => option.clone(),
            Some(option) => option.to_string(),
            None => "…".to_owned(),
        };
        format!(" {name}={value}")
    });
    printable::escape_line(&format!("helve tools call {}{}", entry.name(), arguments.collect::<String>()))
}
