//! Where the service is, and the address of one operation there.

use helve_core::authored::FieldError;
use serde_json::{Map, Value};

use super::document::{Document, Operation, shown};
use super::{Obstacle, names};

/// The address of the service that an operation belongs to, without a slash at its end.
///
/// What the definition says holds for all operations: a test system must never be mixed with the one in the document.
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
        |message: String| Obstacle::Definition(FieldError::new("/api_url", message).hint("give `api_url`, the address of the service"));
    match document.field("servers").and_then(|servers| servers.get(0)) {
        Some(server) => address(server).map_err(wrong),
        None => Err(wrong("the document does not say where the service is".into())),
    }
}

fn address(server: &Value) -> Result<String, String> {
    let url = server.get("url").and_then(Value::as_str).ok_or("the server in the document has no `url`")?;
    let default = |name: &str| {
        let value = server.get("variables")?.get(name)?.get("default")?;
        value.as_str().map(str::to_owned).or_else(|| value.is_number().then(|| value.to_string()))
    };
    let mut text = String::new();
    for piece in pieces(url)? {
        match piece {
            Piece::Fixed(fixed) => text.push_str(fixed),
            Piece::Variable(name) => {
                text += &default(name).ok_or_else(|| format!("the server's variable `{}` has no default", shown(name)))?;
            }
        }
    }
    absolute(&text)
}

fn absolute(url: &str) -> Result<String, String> {
    let url = url.trim();
    let host = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    match host {
        None => Err(format!("the server `{}` is no address that begins with https:// or http://", shown(url))),
        Some("") => Err(format!("the server `{}` has no host", shown(url))),
        Some(_) if url.contains(['{', '}', '?', '#', '\\']) || url.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            Err(format!("the server `{}` is more than an address", shown(url)))
        }
        Some(_) => Ok(url.trim_end_matches('/').to_owned()),
    }
}

/// The variables of a path, in their order, each once.
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

/// The path with templates instead of its variables.
pub(super) fn with_templates(path: &str, templates: &Map<String, Value>) -> Result<String, String> {
    let dots = path.split('/').any(|segment| matches!(segment, "." | ".."));
    if dots || path.contains(['?', '#', '\\']) || path.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("its path is more than a path".into());
    }
    // Without the slash, a path could change the host that comes before it.
    let mut text = if path.starts_with('/') { String::new() } else { "/".to_owned() };
    for piece in pieces(path)? {
        match piece {
            Piece::Fixed(fixed) => text.push_str(fixed),
            Piece::Variable(name) => text.push_str(templates.get(name).and_then(Value::as_str).unwrap_or_default()),
        }
    }
    Ok(text)
}

enum Piece<'t> {
    Fixed(&'t str),
    Variable(&'t str),
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let braces = || format!("the braces in `{}` do not match", shown(text));
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
