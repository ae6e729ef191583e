//! Reads the OpenAPI document that a file refers to. Helve reads it only once, so that it uses the document that was trusted.

use std::path::Path;

use helve_core::Digest;
use helve_project::{ProjectFile, read_inside, read_yaml};
use serde_json::Value;

/// Maximum size of an OpenAPI document.
const MAX_BYTES: u64 = 5 << 20;

/// An OpenAPI document.
pub(super) struct Document {
    /// The path of the document, relative to the project folder.
    pub(super) path: String,
    /// The digest of the document's bytes; `None` if the document cannot be read.
    pub(super) digest: Option<Digest>,
    /// The parsed document, or an error message.
    pub(super) content: Result<Value, String>,
}

impl Document {
    /// Reads the document that a file refers to, with a path relative to that file and inside the project. Returns `None` if the file
    /// refers to no document.
    pub(super) fn of(file: &ProjectFile, root: &Path) -> Option<Self> {
        let name = file.value().get("openapi")?.as_str()?.to_owned();
        let beside = Path::new(&**file.path()).parent().unwrap_or(Path::new(""));
        let path = beside.join(&name).to_string_lossy().into_owned();
        let (digest, content) = match read_inside(root, &root.join(&path), MAX_BYTES) {
            Ok(bytes) => (Some(Digest::of([bytes.as_slice()])), parse(&name, bytes)),
            Err(error) => (None, Err(format!("cannot read `{name}`: {error}"))),
        };
        Some(Self { path, digest, content })
    }

    /// Returns the URLs of all servers in the document.
    pub(super) fn addresses(&self) -> Vec<String> {
        let mut addresses = Vec::new();
        if let Ok(content) = &self.content {
            collect(content, &mut addresses);
        }
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }
}

fn parse(name: &str, bytes: Vec<u8>) -> Result<Value, String> {
    let text = String::from_utf8(bytes).map_err(|_| format!("`{name}` is not UTF-8 text"))?;
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(&text).map_err(|error| format!("`{name}` is not valid JSON: {error}"));
    }
    read_yaml(&text).map(|node| node.value()).map_err(|error| format!("`{name}`, line {}: {error}", error.position.line))
}

/// Returns the URL of a server, with the defaults of its variables filled in as the import does.
fn address(server: &Value) -> Option<String> {
    let url = server.get("url")?.as_str()?.to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    Some(variables.into_iter().flatten().fold(url, |url, (name, variable)| match variable.get("default") {
        Some(Value::String(default)) => url.replace(&format!("{{{name}}}"), default),
        Some(Value::Number(default)) => url.replace(&format!("{{{name}}}"), &default.to_string()),
        _ => url,
    }))
}

/// Collects the `url`s of all `servers`. The reader bounds the depth of the document.
fn collect(value: &Value, addresses: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, addresses)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if let ("servers", Value::Array(servers)) = (name.as_str(), field) {
                    addresses.extend(servers.iter().filter_map(address));
                }
                collect(field, addresses);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
