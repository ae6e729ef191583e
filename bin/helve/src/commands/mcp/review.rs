//! Shows the tools of a server for review: new tools, and the differences of changed tools.

use helve::internal::printable;
use helve::mcp::{Offer, PinStatus, ServerReport, inspect};
use serde_json::{Value, json};

use crate::terminal::{self, BAD, CAREFUL, FAINT, GOOD, STRONG, styled};
use crate::workspace::Workspace;

/// Maximum length of a text in the summary, in characters.
const SUMMARY: usize = 300;
/// Maximum length of a text that is shown in full, in characters.
const FULL: usize = 100_000;

/// Shows the tools of a server that are not approved: a summary, or complete definitions with `everything`.
pub fn show(server: &ServerReport, workspace: &Workspace, everything: bool) {
    let most = if everything { FULL } else { SUMMARY };
    let title = server.server.as_deref().map(|name| format!(", reported name {}", printable::escape_line(name))).unwrap_or_default();
    let address = styled(FAINT, &printable::escape_line(&server.place));
    terminal::note_exactly(&format!("{} {address}{title}", styled(STRONG, &printable::escape_line(&server.name))));
    let others = tools_of_others(server, workspace);
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    // Instructions that were approved before are not shown again.
    let is_known = |offer: &Offer| matches!(offer.pinned, PinStatus::Same | PinStatus::Changed { instructions: None, .. });
    if everything || !server.offers.iter().any(is_known) {
        let was = server.offers.iter().find_map(|offer| match &offer.pinned {
            PinStatus::Changed { instructions, .. } => instructions.as_deref(),
            _ => None,
        });
        // Changes are shown in full, because a small change may matter.
        let most = if was.is_some() { FULL } else { most };
        if let Some(was) = was {
            terminal::note_exactly(&format!("  {}", styled(BAD, &format!("- instructions: {}", indented(was, most)))));
        }
        if let Some(instructions) = &server.instructions {
            let title = if was.is_some() { styled(GOOD, "+ instructions:") } else { styled(FAINT, "instructions:") };
            terminal::note_exactly(&format!("  {title} {}", indented(instructions, most)));
            flags(&json!(instructions), &others);
        }
    }
    for offer in server.withheld() {
        let name = styled(STRONG, &printable::escape_line(&offer.name));
        match &offer.pinned {
            PinStatus::Changed { only_instructions: true, .. } => {
                terminal::note_exactly(&format!("  {} {name}: only the server's instructions", styled(CAREFUL, "changed")));
            }
            PinStatus::Changed { was, .. } => {
                terminal::note_exactly(&format!("  {} {name}", styled(CAREFUL, "changed")));
                // Changes are shown in full, because a small change may matter.
                for line in difference(was, &offer.definition) {
                    terminal::note_exactly(&format!("      {line}"));
                }
            }
            PinStatus::New | PinStatus::Same if everything => {
                terminal::note_exactly(&format!("  {} {name}", styled(GOOD, "new")));
                for (field, value) in fields(&offer.definition) {
                    terminal::note_exactly(&format!("      {} {}", styled(FAINT, &format!("{field}:")), indented(&value, most)));
                }
            }
            PinStatus::New | PinStatus::Same => {
                let description = offer.definition.get("description").and_then(Value::as_str).unwrap_or_default();
                let arguments = styled(FAINT, &printable::escape_line(&arguments(&offer.definition)));
                terminal::note_exactly(&format!("  {} {name}{arguments}", styled(GOOD, "new")));
                if !description.trim().is_empty() {
                    terminal::note_exactly(&format!("      {}", indented(description.trim(), most).replace("\n        ", "\n      ")));
                }
            }
        }
        flags(&offer.definition, &others);
    }
}

/// Returns the names of tools from other sources.
pub fn tools_of_others(server: &ServerReport, workspace: &Workspace) -> Vec<String> {
    let own = format!("mcp:{}", server.name);
    let entries = workspace.helve().catalogue().list();
    entries.iter().filter(|entry| entry.source().as_str() != own).map(|entry| entry.name().to_string()).collect()
}

/// Returns the names of a tool's arguments, optional ones with a `?`, and its annotations.
fn arguments(definition: &Value) -> String {
    let properties = definition.pointer("/inputSchema/properties").and_then(Value::as_object);
    let required = definition.pointer("/inputSchema/required").and_then(Value::as_array);
    let must = |name: &str| required.is_some_and(|required| required.iter().any(|known| known == name));
    let names: Vec<String> =
        properties.into_iter().flatten().map(|(name, _)| if must(name) { name.clone() } else { format!("{name}?") }).collect();
    let hint = |name: &str| definition.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool) == Some(true);
    let hints: Vec<&str> = [("readOnlyHint", "read-only"), ("destructiveHint", "destructive")]
        .iter()
        .filter(|(name, _)| hint(name))
        .map(|(_, words)| *words)
        .collect();
    let hints = if hints.is_empty() { String::new() } else { format!(" annotated as {}", hints.join(" and ")) };
    format!("({}){hints}", names.join(", "))
}

fn flags(value: &Value, others: &[&str]) {
    for flag in inspect(value, others) {
        terminal::note_exactly(&format!("      {} {}", styled(BAD, "!"), printable::escape_line(&flag.to_string())));
    }
}

/// Returns the fields of a definition except its name, as text.
fn fields(definition: &Value) -> Vec<(String, String)> {
    let fields = definition.as_object().into_iter().flatten().filter(|(name, _)| *name != "name");
    fields.map(|(name, value)| (printable::escape_line(name), value.as_str().map_or_else(|| value.to_string(), str::to_owned))).collect()
}

fn indented(text: &str, most: usize) -> String {
    printable::shorten(&printable::escape(text), most).lines().collect::<Vec<_>>().join("\n        ")
}

/// Returns the differences between two definitions, field by field.
fn difference(was: &Value, is: &Value) -> Vec<String> {
    let (was, is) = (fields(was), fields(is));
    let of = |fields: &[(String, String)], name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let mut names: Vec<&String> = was.iter().map(|(name, _)| name).collect();
    names.extend(is.iter().map(|(name, _)| name).filter(|name| of(&was, name).is_none()));
    let mut lines = Vec::new();
    for name in names {
        let (before, after) = (of(&was, name), of(&is, name));
        if before != after {
            lines.extend(before.map(|before| styled(BAD, &format!("- {name}: {}", indented(&before, FULL)))));
            lines.extend(after.map(|after| styled(GOOD, &format!("+ {name}: {}", indented(&after, FULL)))));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_what_was_and_what_is() {
        let was = json!({"name": "a", "description": "Reads.", "title": "A"});
        let is = json!({"name": "a", "description": "Reads\u{202e}.", "icons": []});
        let plain = |line: &String| anstream::adapter::strip_str(line).to_string();
        let lines: Vec<String> = difference(&was, &is).iter().map(plain).collect();
        assert_eq!(lines, ["- description: Reads.", "+ description: Reads\\u{202e}.", "- title: A", "+ icons: []"]);
    }

    #[test]
    fn arguments_are_told_apart() {
        let tool = json!({"inputSchema": {"properties": {"a": {}, "b": {}}, "required": ["a"]}, "annotations": {"destructiveHint": true}});
        assert_eq!(arguments(&tool), "(a, b?) annotated as destructive");
    }
}
