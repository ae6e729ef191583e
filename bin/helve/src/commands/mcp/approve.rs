//! `helve mcp approve`: a person sees what servers say about their tools, and agrees to it or not.

use std::process::ExitCode;

use helve::mcp::{Offer, Pinned, ServerReport, inspect};
use helve::{printable, suggest};
use serde_json::{Value, json};

use crate::cli::Global;
use crate::cli::mcp::Approve;
use crate::failure::Failure;
use crate::terminal::{self, BAD, CAREFUL, FAINT, GOOD, STRONG, styled};
use crate::workspace::Workspace;

/// How much of one text is shown.
const SHOWN: usize = 2_000;

/// Shows what is new or has changed, and asks.
pub fn run(command: &Approve, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    workspace.settle();
    let servers = workspace.helve().mcp_servers();
    let chosen = match &command.name {
        None => servers,
        Some(name) => vec![find(name, servers)?],
    };
    let (mut agreed, mut open) = (Vec::new(), Vec::new());
    for server in chosen {
        if let Some(trouble) = server.trouble.as_ref().filter(|_| !server.connected) {
            return Err(Failure::new("unreachable", format_args!("the server `{}` is not connected: {trouble}", server.name))
                .hint("its tools can be approved when it is"));
        }
        if server.withheld().next().is_none() {
            continue;
        }
        if !global.json {
            show(&server, workspace);
        }
        if command.yes || (!global.json && ask(&server)?) {
            workspace.helve().approve_mcp(&server).map_err(|error| Failure::new("storage", error))?;
            agreed.push(server);
        } else {
            open.push(server);
        }
    }
    let names = |servers: &[ServerReport]| servers.iter().map(|server| server.name.clone()).collect::<Vec<_>>();
    if global.json {
        let shown: Vec<Value> = open.iter().flat_map(|server| server.withheld().map(|offer| change(server, offer))).collect();
        terminal::json(json!({"approved": names(&agreed), "waiting": names(&open), "changes": shown}));
    } else if agreed.is_empty() && open.is_empty() {
        terminal::print("Nothing is to be approved.");
    } else {
        for name in names(&agreed) {
            terminal::print(&format!("{} its tools are used from now on", styled(GOOD, &format!("{}:", printable::escape_line(&name)))));
        }
        for name in names(&open) {
            terminal::print(&format!("{} nothing has changed", styled(CAREFUL, &format!("{}:", printable::escape_line(&name)))));
        }
    }
    Ok(if open.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The server of a name.
pub fn find(name: &str, servers: Vec<ServerReport>) -> Result<ServerReport, Failure> {
    let near = suggest::nearest(name, servers.iter().map(|server| server.name.as_str())).map(|near| format!("did you mean `{near}`?"));
    servers.into_iter().find(|server| server.name == name).ok_or_else(|| {
        Failure::new("not_found", format_args!("there is no MCP server `{name}` that is connected"))
            .hint(near.unwrap_or_else(|| "`helve mcp list` lists them, and what is wrong with the others".to_owned()))
    })
}

/// Asks whether the tools of a server may be used.
pub fn ask(server: &ServerReport) -> Result<bool, Failure> {
    if !terminal::can_ask() {
        return Err(Failure::usage("there is no terminal to ask on").hint("look at what is new, then pass --yes"));
    }
    let name = printable::escape_line(&server.name);
    let answer = terminal::ask(&format!("Use these tools of {name}? {}", styled(FAINT, "[y]es / [n]o")));
    Ok(answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes" | "是" | "好")))
}

/// Shows what a server says that nobody has agreed to.
pub fn show(server: &ServerReport, workspace: &Workspace) {
    let said = server.server.as_deref().map(|said| format!(", which calls itself {}", printable::escape_line(said))).unwrap_or_default();
    terminal::note_exactly(&format!(
        "{} {}{said}",
        styled(STRONG, &printable::escape_line(&server.name)),
        styled(FAINT, &printable::escape_line(&server.place))
    ));
    // Instructions that were agreed to before are not shown again.
    let is_known = |offer: &Offer| matches!(offer.pinned, Pinned::Same | Pinned::Changed { only_instructions: false, .. });
    if let Some(instructions) = server.instructions.as_ref().filter(|_| !server.offers.iter().any(is_known)) {
        terminal::note_exactly(&format!("  {} {}", styled(FAINT, "instructions:"), indented(instructions)));
        flags(&json!(instructions), &[]);
    }
    let own = format!("mcp:{}", server.name);
    let entries = workspace.helve().catalogue().list();
    let others: Vec<&str> = entries.iter().filter(|entry| entry.source().as_str() != own).map(|entry| &**entry.name()).collect();
    for offer in server.withheld() {
        match &offer.pinned {
            Pinned::New | Pinned::Same => {
                terminal::note_exactly(&format!("  {} {}", styled(GOOD, "new"), styled(STRONG, &printable::escape_line(&offer.name))));
                for (field, value) in fields(&offer.definition) {
                    terminal::note_exactly(&format!("      {} {}", styled(FAINT, &format!("{field}:")), indented(&value)));
                }
            }
            Pinned::Changed { only_instructions: true, .. } => {
                terminal::note_exactly(&format!(
                    "  {} {}: only the server's instructions",
                    styled(CAREFUL, "changed"),
                    styled(STRONG, &printable::escape_line(&offer.name))
                ));
            }
            Pinned::Changed { was, .. } => {
                terminal::note_exactly(&format!(
                    "  {} {}",
                    styled(CAREFUL, "changed"),
                    styled(STRONG, &printable::escape_line(&offer.name))
                ));
                for line in difference(was, &offer.definition) {
                    terminal::note_exactly(&format!("      {line}"));
                }
            }
        }
        flags(&offer.definition, &others);
    }
}

fn flags(value: &Value, others: &[&str]) {
    for flag in inspect(value, others) {
        terminal::note_exactly(&format!("      {} {}", styled(BAD, "!"), printable::escape_line(&flag.to_string())));
    }
}

/// The fields of a definition that people want to read, as text.
fn fields(definition: &Value) -> Vec<(String, String)> {
    let Some(object) = definition.as_object() else { return Vec::new() };
    let known = |name: &&String| !["name"].contains(&name.as_str());
    object.iter().filter(|(name, _)| known(name)).map(|(name, value)| (name.clone(), text(value))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn indented(text: &str) -> String {
    printable::shorten(&printable::escape(text), SHOWN).lines().collect::<Vec<_>>().join("\n        ")
}

/// What has changed, field by field.
fn difference(was: &Value, is: &Value) -> Vec<String> {
    let (was, is) = (fields(was), fields(is));
    let of = |fields: &[(String, String)], name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let mut names: Vec<&String> = was.iter().chain(&is).map(|(name, _)| name).collect();
    names.dedup();
    let mut lines = Vec::new();
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let (before, after) = (of(&was, name), of(&is, name));
        if before == after {
            continue;
        }
        let name = printable::escape_line(name);
        if let Some(before) = before {
            lines.push(styled(BAD, &format!("- {name}: {}", indented(&before))));
        }
        if let Some(after) = after {
            lines.push(styled(GOOD, &format!("+ {name}: {}", indented(&after))));
        }
    }
    lines
}

/// What is new or has changed, as programs see it.
fn change(server: &ServerReport, offer: &Offer) -> Value {
    let was = match &offer.pinned {
        Pinned::Changed { was, .. } => was.clone(),
        Pinned::New | Pinned::Same => Value::Null,
    };
    let flags: Vec<String> = inspect(&offer.definition, &[]).iter().map(ToString::to_string).collect();
    json!({"server": server.name, "tool": offer.name, "was": was, "is": offer.definition, "flags": flags})
}
