//! Determines the base URL of the service, and the path of each operation.

use helve_core::authored::FieldError;
use serde_json::{Map, Value};

use super::document::{Document, Operation, shown};
use super::{Obstacle, names};

/// Returns the base URL of an operation, without a trailing slash.
///
/// A URL in the definition, `given`, applies to all operations, so that calls never mix, for example, a test system and the system in
/// the document.
pub(super) fn base(given: Option<&str>, document: &Document<'_>, operation: &Operation<'_>) -> Result<String, Obstacle> {
    if let Some(given) = given {
        return absolute(given).map_err(|message| Obstacle::Definition(FieldError::new("/api_url", message)));
    }
    for own in [operation.fields, operation.shared] {
        if let Some(server) = own.get("servers").and_then(|servers| servers.get(0)) {
            return address(server).map_err(Obstacle::Reason);
        }
    }
    let wrong =
        |message: String| Obstacle::Definition(FieldError::new("/api_url", message).hint("set `api_url` to the base URL of the service"));
    match document.field("servers").and_then(|servers| servers.get(0)) {
        Some(server) => address(server).map_err(wrong),
        None => Err(wrong("the document has no server URL".into())),
    }
}

fn address(server: &Value) -> Result<String, String> {
    let url = server.get("url").and_then(Value::as_str).ok_or("the document's server has no `url`")?;
    let default = |name: &str| {
        let value = server.get("variables")?.get(name)?.get("default")?;
        value.as_str().map(str::to_owned).or_else(|| value.is_number().then(|| value.to_string()))
    };
    let replaced =
        replace_variables(url, |name| default(name).ok_or_else(|| format!("the server variable `{}` has no default", shown(name))))?;
    absolute(&replaced)
}

fn absolute(url: &str) -> Result<String, String> {
    let url = url.trim();
    let host = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    match host {
        None => Err(format!("the server URL `{}` does not start with https:// or http://", shown(url))),
        Some("") => Err(format!("the server URL `{}` has no host", shown(url))),
        Some(_) if url.contains(['{', '}', '?', '#', '\\']) || url.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            Err(format!("the server URL `{}` contains characters that are not allowed", shown(url)))
        }
        Some(_) => Ok(url.trim_end_matches('/').to_owned()),
    }
}

/// Returns the variables of a path in order, without duplicates.
pub(super) fn variables(path: &str) -> Result<Vec<&str>, String> {
    let mut found = Vec::new();
    for piece in pieces(path)? {
        if let Piece::Variable(name) = piece
            && !found.contains(&name)
        {
            found.push(name);
        }
    }
    Ok(found)
}

/// Returns the path with templates in place of its variables.
pub(super) fn with_templates(path: &str, templates: &Map<String, Value>) -> Result<String, String> {
    let dots = path.split('/').any(|segment| matches!(segment, "." | ".."));
    if dots || path.contains(['?', '#', '\\']) || path.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("its path contains characters that are not allowed".into());
    }
    // Add a slash: without it, the path could change the host.
    let slash = if path.starts_with('/') { "" } else { "/" };
    let path = replace_variables(path, |name| Ok(templates.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()))?;
    Ok(format!("{slash}{path}"))
}

fn replace_variables(text: &str, value: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let piece = |piece| match piece {
        Piece::Fixed(fixed) => Ok(fixed.to_owned()),
        Piece::Variable(name) => value(name),
    };
    pieces(text)?.into_iter().map(piece).collect()
}

enum Piece<'t> {
    Fixed(&'t str),
    Variable(&'t str),
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let braces = || format!("unbalanced braces in `{}`", shown(text));
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['{', '}']) {
        let (fixed, variable) = rest.split_at(start);
        let (name, after) = variable.strip_prefix('{').and_then(|inner| inner.split_once('}')).ok_or_else(braces)?;
        if name.contains('{') || names::snake(name).is_empty() {
            return Err(braces());
        }
        pieces.extend([Piece::Fixed(fixed), Piece::Variable(name)]);
        rest = after;
    }
    pieces.push(Piece::Fixed(rest));
    Ok(pieces)
}
