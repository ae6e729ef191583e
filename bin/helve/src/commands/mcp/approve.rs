//! `helve mcp approve`: a person sees what servers say about their tools, and agrees to it or not.

use std::process::ExitCode;

use helve::internal::{printable, suggest};
use helve::mcp::{Offer, PinStatus, ServerReport, inspect};
use serde_json::{Value, json};

use super::add::PATIENCE;
use super::words;
use crate::cli::Global;
use crate::cli::mcp::Approve;
use crate::failure::Failure;
use crate::terminal::{self, CAREFUL, FAINT, GOOD, styled};
use crate::workspace::{Workspace, unless_interrupted};

/// Shows what is new or has changed, and asks.
pub fn run(command: &Approve, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    workspace.settle();
    if let Some(name) = &command.name {
        // Whoever names one wants to see its tools, however long it takes to start.
        let _ = workspace.block_on(unless_interrupted(async { tokio::time::timeout(PATIENCE, workspace.helve().mcp_settled(name)).await }));
    }
    let servers = workspace.helve().mcp_servers();
    let chosen = match &command.name {
        None => servers,
        Some(name) => vec![find(name, servers)?],
    };
    let (mut agreed, mut open, mut away) = (Vec::new(), Vec::new(), Vec::new());
    for server in chosen {
        let connecting = (!server.connected).then_some("it is still connecting");
        if let Some(error) = server.error.as_deref().or(connecting) {
            let failure = Failure::new("unreachable", format_args!("the server `{}` is not connected: {error}", server.name))
                .hint("its tools can be approved when it is");
            if command.name.is_some() {
                return Err(failure);
            }
            // The others can be approved all the same.
            let _ = failure.show(false);
            away.push(server);
            continue;
        }
        if server.withheld().next().is_none() {
            continue;
        }
        if !global.json {
            words::show(&server, workspace, false);
        }
        if command.yes || (!global.json && ask(&server, workspace)?) {
            workspace.helve().approve_mcp(&server).map_err(|error| Failure::new("storage", error))?;
            agreed.push(server);
        } else {
            open.push(server);
        }
    }
    report(&agreed, &open, &away, global, workspace);
    Ok(if open.is_empty() && away.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(agreed: &[ServerReport], open: &[ServerReport], away: &[ServerReport], global: &Global, workspace: &Workspace) {
    let names = |servers: &[ServerReport]| servers.iter().map(|server| server.name.clone()).collect::<Vec<_>>();
    let title = |style, name: &str| styled(style, &format!("{}:", printable::escape_line(name)));
    if global.json {
        let changes: Vec<Value> = open.iter().flat_map(|server| changes(server, workspace)).collect();
        terminal::json(json!({"approved": names(agreed), "waiting": names(open), "unreachable": names(away), "changes": changes}));
    } else if agreed.is_empty() && open.is_empty() && away.is_empty() {
        terminal::print("Nothing is to be approved.");
    } else {
        for name in names(agreed) {
            terminal::print(&format!("{} its tools are used from now on", title(GOOD, &name)));
        }
        for name in names(open) {
            terminal::print(&format!("{} what is new or has changed is not used", title(CAREFUL, &name)));
        }
    }
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
pub fn ask(server: &ServerReport, workspace: &Workspace) -> Result<bool, Failure> {
    if !terminal::can_ask() {
        return Err(Failure::usage("there is no terminal to ask on").hint("look at what is new, then pass --yes"));
    }
    let name = printable::escape_line(&server.name);
    loop {
        let answer = terminal::ask(&format!("Use these tools of {name}? {}", styled(FAINT, "[y]es / [n]o / [s]how everything")));
        match answer.as_deref().map(str::to_lowercase).as_deref() {
            Some("y" | "yes" | "是" | "好") => return Ok(true),
            Some("s" | "show") => words::show(server, workspace, true),
            _ => return Ok(false),
        }
    }
}

/// What is new or has changed at a server, as programs see it.
fn changes(server: &ServerReport, workspace: &Workspace) -> Vec<Value> {
    let others = words::tools_of_others(server, workspace);
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
