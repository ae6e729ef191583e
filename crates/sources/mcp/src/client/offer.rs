//! Reads the tools that a server offers. The list is untrusted: Helve omits unusable entries and writes a note about each.

use std::collections::HashSet;
use std::io;
use std::time::Instant;

use helve_core::authored::read_parameters;
use helve_core::json::{JsonLimits, canonical};
use helve_core::{Digest, Permission, Rules, Schema, ToolKind, ToolSpec, printable};
use helve_mcp_wire::{HeaderParam, PageError, PageLimits, Pages};
use serde_json::{Map, Value, json};

use super::connection::{Connection, RequestOptions};
use super::error::RequestError;
use super::limits::HANDSHAKE_TIMEOUT;
use crate::definition::{McpDefinition, ToolFields};
use crate::pin::{PinStatus, digest, strip_words, without_hidden};

/// Maximum size of one tool definition in bytes.
const MAX_DEFINITION: usize = 512 << 10;
/// Maximum size of all tool definitions of a server in bytes. Helve keeps each definition several times in memory.
const MAX_LIST: usize = 4 << 20;

/// A tool as its server describes it.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The tool's name on the server.
    pub name: String,
    /// The tool's definition from the server's list.
    pub definition: Value,
    /// The digest of the definition and the server's instructions.
    pub digest: Digest,
    /// Whether the definition is approved.
    pub pinned: PinStatus,
}

/// The usable tools of a server, and notes about the others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offers {
    pub(crate) tools: Vec<Offer>,
    pub(crate) notes: Vec<String>,
}

/// Requests all pages of a list and returns its items. The timeout covers all pages together. Adds a note if the list is incomplete.
pub(crate) async fn list(
    connection: &Connection,
    method: &str,
    field: &'static str,
    notes: &mut Vec<String>,
) -> Result<Vec<Value>, RequestError> {
    let mut pages = Pages::new(field, PageLimits::default());
    let mut cursor = None;
    let mut bytes = 0;
    let started = Instant::now();
    loop {
        let params: Map<String, Value> = cursor.iter().map(|cursor: &String| ("cursor".to_owned(), json!(cursor))).collect();
        let left = if cursor.is_none() { HANDSHAKE_TIMEOUT } else { HANDSHAKE_TIMEOUT.saturating_sub(started.elapsed()) };
        let options = RequestOptions { timeout: Some(left), ..RequestOptions::default() };
        let response = match connection.request(method, &params, &options).await {
            Err(RequestError::TimedOut(_)) if cursor.is_some() => {
                notes.push(format!("the list did not end within {} s; the rest is ignored", HANDSHAKE_TIMEOUT.as_secs()));
                return Ok(pages.items());
            }
            response => response?,
        };
        bytes += size(&response);
        match pages.take(response) {
            Ok(Some(next)) if bytes < MAX_LIST => cursor = Some(next),
            Ok(Some(_)) => {
                notes.push(format!("the list is larger than {MAX_LIST} bytes; the rest is ignored"));
                return Ok(pages.items());
            }
            Ok(None) => return Ok(pages.items()),
            Err(PageError::NoList(field)) => return Err(RequestError::Protocol(format!("the response has no list `{field}`"))),
            Err(error) => {
                notes.push(error.to_string());
                return Ok(pages.items());
            }
        }
    }
}

impl Offers {
    /// Reads the tools in the entries of a list, and adds a note about each unusable entry.
    pub(crate) fn read(entries: Vec<Value>, instructions: Option<&str>, mut notes: Vec<String>, over_http: bool) -> Self {
        let mut names = HashSet::new();
        let mut tools = Vec::new();
        let mut bytes = 0;
        for (index, definition) in entries.into_iter().enumerate() {
            let checked = check(&definition, over_http);
            bytes += if checked.is_ok() { size(&definition) } else { 0 };
            if bytes > MAX_LIST {
                notes.push(format!("the tool definitions are larger than {MAX_LIST} bytes; the rest is ignored"));
                break;
            }
            match checked {
                Ok(name) if names.insert(name.clone()) => {
                    let digest = digest(&definition, instructions);
                    tools.push(Offer { name, definition, digest, pinned: PinStatus::New });
                }
                Ok(name) => notes.push(format!("the tool `{name}` occurs twice; the first one is used")),
                Err(why) => {
                    let name = definition.get("name").and_then(Value::as_str).map(|name| shown(name, 80));
                    let name = name.unwrap_or_else(|| format!("number {}", index + 1));
                    notes.push(format!("the tool {name} is ignored: {}", shown(&why, 300)));
                }
            }
        }
        Self { tools, notes }
    }

    /// Removes the tools that the server's definition does not select, and those whose name is too long with the prefix.
    pub(crate) fn retain_wanted(&mut self, server: &McpDefinition) {
        let longest = ToolSpec::MAX_NAME.saturating_sub(server.prefix().len() + 1);
        let is_renamed = |name: &str| server.tools.get(name).is_some_and(|fields| fields.name.is_some());
        let notes = &mut self.notes;
        self.tools.retain(|offer| {
            let wanted = server.wants(&offer.name);
            let too_long = wanted && offer.name.len() > longest && !is_renamed(&offer.name);
            if too_long {
                notes.push(format!("the tool {} is ignored: its name with the prefix is too long", shown(&offer.name, 80)));
            }
            wanted && !too_long
        });
    }
}

/// Shortens and escapes untrusted text for a note.
fn shown(words: &str, length: usize) -> String {
    printable::escape_line(&printable::shorten(words, length))
}

/// Returns the length of a value as JSON in bytes.
fn size(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Checks whether a tool definition can be used. Returns the name of the tool, or what is wrong.
fn check(definition: &Value, over_http: bool) -> Result<String, String> {
    let name = definition.get("name").and_then(Value::as_str).ok_or("it has no name")?;
    let size = size(definition);
    if size > MAX_DEFINITION {
        return Err(format!("its definition has {size} bytes; the limit is {MAX_DEFINITION}"));
    }
    if definition.pointer("/execution/taskSupport").and_then(Value::as_str) == Some("required") {
        return Err("it can only be called as an MCP task, which is not supported".to_owned());
    }
    if over_http {
        HeaderParam::of(definition.get("inputSchema").unwrap_or(&Value::Null)).map_err(|error| error.to_string())?;
    }
    spec(definition, &McpDefinition::default(), &ToolFields::default()).map_err(|error| error.to_string())?;
    Ok(name.to_owned())
}

/// Creates the spec of a tool from the server's definition of the tool and the fields in the definition file.
pub(crate) fn spec(definition: &Value, server: &McpDefinition, fields: &ToolFields) -> Result<ToolSpec, helve_core::authored::FieldError> {
    let text = |field: &str| definition.get(field).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let mut input = with_defaults(definition.get("inputSchema"), &fields.arguments);
    strip_words(&mut input);
    let input = read_parameters(Some(&input), "/inputSchema")?;
    let description =
        fields.description.clone().unwrap_or_else(|| without_hidden(text("description").or(text("title")).unwrap_or_default()));
    let description = printable::shorten_bytes(&description, ToolSpec::MAX_DESCRIPTION / 2);
    let mut spec = ToolSpec::new(name, description, input)?
        .with_rules(rules(definition, server, fields))
        .with_origin(ToolKind::Mcp, format!("{} ({})", server.name, printable::shorten(&server.place(), 80)));
    if let Some(title) = text("title").or_else(|| definition.pointer("/annotations/title").and_then(Value::as_str)) {
        spec = spec.with_title(printable::shorten(&without_hidden(title), 200));
    }
    // An invalid output schema is ignored.
    let output = definition.get("outputSchema").filter(|schema| schema.is_object() && canonical(schema).len() <= JsonLimits::SCHEMA.bytes);
    if let Some(output) = output.and_then(|schema| Schema::new(schema.clone()).ok()) {
        spec = spec.with_output(output);
    }
    Ok(spec)
}

/// Returns the input schema with the defaults from the definition file. Arguments with a default are not required.
fn with_defaults(schema: Option<&Value>, defaults: &Map<String, Value>) -> Value {
    let mut schema = schema.filter(|schema| schema.is_object()).cloned().unwrap_or_else(|| json!({"type": "object"}));
    let Some(fields) = schema.as_object_mut() else { return schema };
    // Servers omit the type if there are no arguments.
    fields.entry("type").or_insert_with(|| json!("object"));
    for (name, value) in defaults {
        if let Some(Value::Object(property)) = fields.get_mut("properties").and_then(|properties| properties.get_mut(name)) {
            property.insert("default".to_owned(), value.clone());
        }
        if let Some(Value::Array(required)) = fields.get_mut("required") {
            required.retain(|required| required != name);
        }
    }
    schema
}

/// Returns the rules of calls to a tool. The server's annotations count only if the server is trusted.
fn rules(definition: &Value, server: &McpDefinition, fields: &ToolFields) -> Rules {
    let hint = |name: &str| server.trusted && definition.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool) == Some(true);
    let usual = if !server.trusted || hint("destructiveHint") { Permission::Confirm } else { Permission::Auto };
    let mut rules = server.rules.rules(usual);
    rules.permission = fields.permission.unwrap_or(rules.permission);
    rules.timeout = fields.timeout.map(|timeout| timeout.0).or(rules.timeout);
    rules.idempotent |= hint("idempotentHint") || hint("readOnlyHint");
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(yaml: Value) -> McpDefinition {
        serde_json::from_value(yaml).expect("a definition")
    }

    #[test]
    fn one_bad_entry_costs_no_other() {
        let entries = vec![
            json!({"name": "good", "inputSchema": {"type": "object"}}),
            json!({"name": "bad name", "inputSchema": {"type": "object"}}),
            json!({"description": "no name"}),
            json!({"name": "good", "inputSchema": {"type": "object"}}),
            json!({"name": "far", "inputSchema": {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:1/s.json"}}}}),
            json!({"name": "huge", "inputSchema": {"type": "object"}, "description": "x".repeat(MAX_DEFINITION)}),
            json!("what"),
            json!({"name": "later", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}),
            json!({"name": "bare"}),
        ];
        let offers = Offers::read(entries, None, Vec::new(), false);
        let names: Vec<&str> = offers.tools.iter().map(|offer| offer.name.as_str()).collect();
        assert_eq!(names, ["good", "bare"]);
        assert_eq!(offers.notes.len(), 7, "{:#?}", offers.notes);
    }

    #[test]
    fn annotations_count_only_for_trusted_servers() {
        let tool = |annotations: Value| json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": annotations});
        let of = |trusted: bool, annotations: Value| {
            let server = definition(json!({"name": "s", "command": ["x"], "trusted": trusted}));
            let rules = spec(&tool(annotations), &server, &ToolFields::default()).expect("a spec").rules().clone();
            (rules.permission, rules.idempotent)
        };
        assert_eq!(of(true, json!({})), (Permission::Auto, false));
        assert_eq!(of(true, json!({"destructiveHint": true})), (Permission::Confirm, false));
        assert_eq!(of(true, json!({"readOnlyHint": true})), (Permission::Auto, true));
        assert_eq!(of(false, json!({"readOnlyHint": true})), (Permission::Confirm, false));
    }

    #[test]
    fn the_file_has_the_last_word_about_a_tool() {
        let server = definition(json!({"name": "s", "command": ["x"], "timeout": "5s", "permission": "deny", "tools": {
            "t": {"description": "Mine.", "arguments": {"a": 1}, "permission": "auto", "timeout": "1m"}}}));
        let tool = json!({"name": "t", "description": "Theirs.", "inputSchema": {"type": "object", "required": ["a", "b"],
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}});
        let spec = spec(&tool, &server, &server.tools["t"]).expect("a spec");
        assert_eq!(&**spec.description(), "Mine.");
        assert_eq!((spec.rules().permission, spec.rules().attempt_timeout().as_secs()), (Permission::Auto, 60));
        let mut arguments = json!({"b": "x"});
        assert_eq!(spec.input().fit(&mut arguments), Ok(()));
        assert_eq!(arguments, json!({"a": 1, "b": "x"}));
    }
}
