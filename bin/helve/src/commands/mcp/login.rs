//! `helve mcp login`: logs in to an MCP server with the browser, or logs out.

use std::process::ExitCode;
use std::sync::Arc;

use helve::BoxFuture;
use helve::internal::printable;
use helve::mcp::login::{Browser, SystemBrowser};
use helve::mcp::{RequestError, Url};
use serde_json::json;

use super::approve;
use crate::cli::Global;
use crate::cli::mcp::Login;
use crate::failure::Failure;
use crate::terminal::{self, GOOD, STRONG, styled};
use crate::workspace::{Workspace, unless_interrupted};

/// Logs in or out.
pub fn run(command: &Login, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let helve = workspace.helve();
    workspace.settle();
    let server = approve::find(&command.name, helve.mcp_servers())?;
    if !command.forget && server.connected {
        return Ok(say(global, &server.name, "already connected; no login needed"));
    }
    let done = if command.forget {
        workspace.block_on(helve.mcp_logout(&server.name)).map_err(|error| Failure::new("storage", error))?;
        "logged out"
    } else {
        workspace.block_on(unless_interrupted(helve.mcp_login(&server.name, Arc::new(LinkAndBrowser)))).map_err(|error| {
            let kind = if matches!(error, RequestError::LoginRequired(_)) { "permission_denied" } else { "unreachable" };
            Failure::new(kind, error)
        })?;
        terminal::note(&format!("next: review its tools with `helve mcp approve {}`", printable::escape_line(&server.name)));
        "logged in"
    };
    Ok(say(global, &server.name, done))
}

fn say(global: &Global, server: &str, done: &str) -> ExitCode {
    let name = styled(GOOD, &format!("{}:", printable::escape_line(server)));
    global.print(json!({"server": server, "message": done}), &format!("{name} {done}"));
    ExitCode::SUCCESS
}

/// A browser that also prints the link, for people whose browser runs on another machine.
struct LinkAndBrowser;

impl Browser for LinkAndBrowser {
    fn open<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            terminal::note("Open this link to log in, if your browser does not open it:");
            // The link contains no secret that outlives the login.
            terminal::note_exactly(&format!("  {}", styled(STRONG, url.as_str())));
            if let Err(why) = SystemBrowser.open(url).await {
                terminal::note(&format!("(cannot open the browser: {why})"));
            }
            Ok(())
        })
    }
}
