//! `helve mcp add`: a server is written down, connected and shown.

use std::process::ExitCode;
use std::time::Duration;

use helve::internal::printable;
use helve::mcp::NewServer;
use helve::project::Trust;
use helve::secret;
use serde_json::json;

use super::{approve, words};
use crate::cli::Global;
use crate::cli::mcp::Add;
use crate::failure::Failure;
use crate::terminal::{self, GOOD, styled};
use crate::workspace::{Workspace, unless_interrupted};

/// How long a new server may take to be connected: package managers fetch it first.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Writes the server's file, connects it and asks about its tools.
pub fn run(command: &Add, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    if command.url.is_none() && command.program.is_empty() {
        return Err(
            Failure::usage("a server is a program or an address").hint("helve mcp add NAME -- COMMAND…, or helve mcp add NAME --url URL")
        );
    }
    no_secrets(command)?;
    let server = NewServer {
        name: command.name.clone(),
        command: command.program.clone(),
        url: command.url.clone(),
        headers: read_headers(&command.header)?,
        env: command.env.clone(),
        prefix: command.prefix.clone(),
        trusted: command.trusted,
    };
    let helve = workspace.helve();
    let before = workspace.report();
    let was_trusted = before.trust.is_some_and(Trust::allows);
    let file = server.write(&before.root).map_err(|error| Failure::new("conflict", error))?;
    workspace.block_on(async {
        helve.reload().map_err(|error| Failure::new("storage", error))?;
        // Typing the command is consent to this server, and to nothing else that the folder would run.
        if was_trusted {
            helve.trust_file(&file).map_err(|error| Failure::new("storage", error))?;
        }
        Ok::<_, Failure>(())
    })?;
    if workspace.report().waiting.contains(&file) {
        terminal::note("The folder is not trusted, so the server is not connected.");
        done(global, &file, 0, false);
        return Err(Failure::new("permission_denied", format_args!("the server `{}` is not connected", command.name))
            .hint("look at what the folder would run with `helve trust`, then `helve mcp approve`"));
    }
    let connected =
        workspace.block_on(unless_interrupted(async { tokio::time::timeout(PATIENCE, helve.mcp_settled(&command.name)).await }));
    let found = helve.mcp_servers().into_iter().find(|server| server.name == command.name);
    let Some(server) = found.filter(|_| connected.is_ok()) else {
        super::super::show_diagnostics(&workspace.diagnostics());
        return Err(Failure::new("failed", format_args!("the server `{}` was written to {file} and is not connected", command.name)));
    };
    if server.needs_login {
        done(global, &file, 0, false);
        return Err(Failure::new("permission_denied", format_args!("the server `{}` wants a login", server.name))
            .hint(format!("log in with `helve mcp login {0}`, then look at its tools with `helve mcp approve {0}`", server.name)));
    }
    if let Some(error) = &server.error {
        return Err(Failure::new(
            "unreachable",
            format_args!("the server `{}` was written to {file} and is not connected: {error}", server.name),
        )
        .hint(format!("correct the file, and `helve mcp list` tries again; or `helve mcp remove {}`", server.name)));
    }
    if !global.json {
        words::show(&server, workspace, false);
    }
    let agreed = command.yes || (!global.json && terminal::can_ask() && approve::ask(&server, workspace)?);
    if agreed {
        helve.approve_mcp(&server).map_err(|error| Failure::new("storage", error))?;
    } else {
        terminal::note(&format!("Its tools are not used yet; `helve mcp approve {}` asks again.", command.name));
    }
    Ok(done(global, &file, server.offers.len(), agreed))
}

fn done(global: &Global, file: &str, tools: usize, approved: bool) -> ExitCode {
    if global.json {
        terminal::json(json!({"file": file, "tools": tools, "approved": approved}));
    } else {
        let used = if approved { format!(", {tools} tools are used") } else { String::new() };
        terminal::print(&format!("{} {file}{used}", styled(GOOD, "written:")));
    }
    ExitCode::SUCCESS
}

/// Files of a project are shared; what is secret comes from the environment of whoever runs it.
fn no_secrets(command: &Add) -> Result<(), Failure> {
    let is_secret =
        |name: &str| secret::is_secret_variable(&name.replace('-', "_").to_ascii_uppercase()) || name.eq_ignore_ascii_case("authorization");
    for (written, at) in command.header.iter().map(|header| (header, ':')).chain(command.env.iter().map(|variable| (variable, '='))) {
        if let Some((name, value)) = written.split_once(at)
            && is_secret(name.trim())
            && !value.contains("${")
        {
            let name = printable::escape_line(name.trim());
            return Err(Failure::usage(format_args!(
                "the value of `{name}` looks like a secret, and would be written to a file of the project"
            ))
            .hint("write `${NAME}` instead, and set NAME in the environment"));
        }
    }
    Ok(())
}

fn read_headers(written: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let read = |header: &String| header.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    let headers: Option<Vec<_>> = written.iter().map(read).collect();
    headers.ok_or_else(|| Failure::usage("a header is written as `Name: value`"))
}
