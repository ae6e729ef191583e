//! `helve mcp login`: a person logs in at a server, in their browser.

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

/// Logs in, or forgets a login.
pub fn run(command: &Login, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let helve = workspace.helve();
    workspace.settle();
    let server = approve::find(&command.name, helve.mcp_servers())?;
    if !command.forget && server.connected {
        return Ok(say(global, &server.name, "no login is needed now"));
    }
    let done = if command.forget {
        workspace.block_on(helve.mcp_logout(&server.name)).map_err(|error| Failure::new("storage", error))?;
        "the login is forgotten"
    } else {
        workspace.block_on(unless_interrupted(helve.mcp_login(&server.name, Arc::new(Shown)))).map_err(|error| {
            let kind = if matches!(error, RequestError::LoginRequired(_)) { "permission_denied" } else { "unreachable" };
            Failure::new(kind, error)
        })?;
        terminal::note(&format!("next: look at its tools with `helve mcp approve {}`", printable::escape_line(&server.name)));
        "logged in"
    };
    Ok(say(global, &server.name, done))
}

fn say(global: &Global, server: &str, done: &str) -> ExitCode {
    if global.json {
        terminal::json(json!({"server": server, "message": done}));
    } else {
        terminal::print(&format!("{} {done}", styled(GOOD, &format!("{}:", printable::escape_line(server)))));
    }
    ExitCode::SUCCESS
}

/// The browser of this person, with the address beside it for those whose browser is elsewhere.
pub struct Shown;

impl Browser for Shown {
    fn open<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            terminal::note("Log in at this address; your browser should open it:");
            // It holds nothing that is secret for longer than the login takes.
            terminal::note_exactly(&format!("  {}", styled(STRONG, url.as_str())));
            if let Err(why) = SystemBrowser.open(url).await {
                terminal::note(&format!("(it does not: {why})"));
            }
            Ok(())
        })
    }
}
