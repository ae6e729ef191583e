//! `helve mcp approve`: shows new and changed tools of MCP servers, and asks whether to approve them.

use std::process::ExitCode;

use helve::internal::printable;
use helve::mcp::{Offer, PinStatus, ServerReport, inspect};
use serde_json::{Value, json};

use super::add::CONNECT_TIMEOUT;
use super::review;
use crate::cli::Global;
use crate::cli::mcp::Approve;
use crate::failure::Failure;
use crate::terminal::language::is_yes;
use crate::terminal::{self, CAREFUL, FAINT, GOOD, styled};
use crate::workspace::{Workspace, unless_interrupted};

/// Shows new and changed tools, and asks whether to approve them.
pub fn run(command: &Approve, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    workspace.settle();
    if let Some(name) = &command.name {
        // A server that the user named may take long to start.
        let _ = workspace
            .block_on(unless_interrupted(async { tokio::time::timeout(CONNECT_TIMEOUT, workspace.helve().mcp_settled(name)).await }));
    }
    let servers = workspace.helve().mcp_servers();
    let chosen = match &command.name {
        None => servers,
        Some(name) => vec![find(name, servers)?],
    };
    let (mut approved, mut pending, mut unreachable) = (Vec::new(), Vec::new(), Vec::new());
    for server in chosen {
        let connecting = (!server.connected).then_some("it is still connecting");
        if let Some(error) = server.error.as_deref().or(connecting) {
            let failure = Failure::new("unreachable", format_args!("the server `{}` is not connected: {error}", server.name))
                .hint("`helve mcp list` shows the state of the servers; approve the tools once the server is connected");
            if command.name.is_some() {
                return Err(failure);
            }
            // The other servers can still be approved.
            let _ = failure.show(false);
            unreachable.push(server);
            continue;
        }
        if server.withheld().next().is_none() {
            continue;
        }
        if !global.json {
            review::show(&server, workspace, false);
        }
        if command.yes || (!global.json && ask(&server, workspace)?) {
            workspace.helve().approve_mcp(&server)?;
            approved.push(server);
        } else {
            pending.push(server);
        }
    }
    report(&approved, &pending, &unreachable, global, workspace);
    Ok(if pending.is_empty() && unreachable.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(approved: &[ServerReport], pending: &[ServerReport], unreachable: &[ServerReport], global: &Global, workspace: &Workspace) {
    let names = |servers: &[ServerReport]| servers.iter().map(|server| server.name.clone()).collect::<Vec<_>>();
    let title = |style, name: &str| styled(style, &format!("{}:", printable::escape_line(name)));
    if global.json {
        let changes: Vec<Value> = pending.iter().flat_map(|server| changes(server, workspace)).collect();
        terminal::json(
            json!({"approved": names(approved), "waiting": names(pending), "unreachable": names(unreachable), "changes": changes}),
        );
    } else if approved.is_empty() && pending.is_empty() && unreachable.is_empty() {
        terminal::print("No tools to approve.");
    } else {
        for name in names(approved) {
            terminal::print(&format!("{} tools approved", title(GOOD, &name)));
        }
        for name in names(pending) {
            terminal::print(&format!("{} new and changed tools not approved", title(CAREFUL, &name)));
        }
    }
}

/// The server with this name.
pub fn find(name: &str, servers: Vec<ServerReport>) -> Result<ServerReport, Failure> {
    let (mut named, others): (Vec<_>, Vec<_>) = servers.into_iter().partition(|server| server.name == name);
    named.pop().ok_or_else(|| {
        let known = others.iter().map(|server| server.name.as_str());
        Failure::new("not_found", format_args!("there is no connected MCP server `{name}`")).suggest(
            name,
            known,
            "`helve mcp list` lists servers and their errors",
        )
    })
}

/// Asks whether to approve the tools of a server.
pub fn ask(server: &ServerReport, workspace: &Workspace) -> Result<bool, Failure> {
    if !terminal::can_ask() {
        return Err(Failure::usage("cannot ask: stdin or stderr is not a terminal").hint("review the tools with --json, then pass --yes"));
    }
    let name = printable::escape_line(&server.name);
    loop {
        let answer = terminal::ask(&format!("Approve these tools of {name}? {}", styled(FAINT, "[y]es / [n]o / [s]how all")));
        match answer.as_deref().map(str::to_lowercase).as_deref() {
            Some(answer) if is_yes(answer) => return Ok(true),
            Some("s" | "show") => review::show(server, workspace, true),
            _ => return Ok(false),
        }
    }
}

/// Returns the new and changed tools of a server as JSON.
fn changes(server: &ServerReport, workspace: &Workspace) -> Vec<Value> {
    let others = review::tools_of_others(server, workspace);
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let change = |offer: &Offer| {
        let (was, instructions_were) = match &offer.pinned {
            PinStatus::Changed { was, instructions, .. } => (was.clone(), instructions.as_deref()),
            PinStatus::New | PinStatus::Same => (Value::Null, None),
        };
        let flags: Vec<String> = inspect(&offer.definition, &others).iter().map(ToString::to_string).collect();
        json!({"server": server.name, "tool": offer.name, "was": was, "is": offer.definition, "instructions": server.instructions,
            "instructions_were": instructions_were, "flags": flags})
    };
    server.withheld().map(change).collect()
}
