//! `helve mcp list`: lists MCP servers and their state.

use std::process::ExitCode;

use helve::mcp::ServerReport;
use serde_json::{Value, json};

use crate::cli::Global;
use crate::commands::show_diagnostics;
use crate::terminal::table::{Cell, Table};
use crate::terminal::{self, BAD, CAREFUL, FAINT, GOOD, STRONG};
use crate::workspace::Workspace;

/// Lists all MCP servers.
pub fn run(global: &Global, workspace: &Workspace) -> ExitCode {
    let diagnostics = workspace.diagnostics();
    let servers = workspace.helve().mcp_servers();
    if global.json {
        let list: Vec<Value> = servers.iter().map(describe).collect();
        terminal::json(json!({"servers": list, "diagnostics": diagnostics}));
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new(&["NAME", "STATE", "PROTOCOL", "TOOLS", "WHERE"]);
    for server in &servers {
        let (state, style) = match (server.connected, server.withheld().count()) {
            (true, 0) => ("connected", GOOD),
            (true, _) => ("approval needed", CAREFUL),
            (false, _) if server.needs_login => ("login needed", CAREFUL),
            (false, _) if server.error.is_some() => ("not connected", BAD),
            (false, _) => ("connecting", FAINT),
        };
        let used = server.offers.len() - server.withheld().count();
        table.row(vec![
            Cell::new(&server.name, STRONG),
            Cell::new(state, style),
            Cell::from(server.version.as_deref().unwrap_or("-")),
            Cell::from(format!("{used} of {}", server.offers.len()).as_str()),
            Cell::from(server.place.as_str()),
        ]);
    }
    if servers.is_empty() {
        terminal::note("No MCP servers. `helve mcp add NAME -- COMMAND` adds one.");
    } else {
        table.print();
    }
    show_diagnostics(&diagnostics);
    ExitCode::SUCCESS
}

/// Returns one server as JSON.
pub fn describe(server: &ServerReport) -> Value {
    let tools: Vec<Value> =
        server.offers.iter().map(|offer| json!({"name": offer.name, "digest": offer.digest, "approved": offer.pinned.is_same()})).collect();
    json!({
        "name": server.name,
        "place": server.place,
        "connected": server.connected,
        "error": server.error,
        "protocol": server.version,
        "server": server.server,
        "tools": tools,
        "notes": server.notes,
    })
}
