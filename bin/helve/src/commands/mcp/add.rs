//! `helve mcp add`: writes a server's file, connects to the server and shows its tools.

use std::process::ExitCode;
use std::time::Duration;

use helve::internal::printable;
use helve::mcp::NewServer;
use helve::project::Trust;
use helve::secret;
use serde_json::json;

use super::{approve, review};
use crate::cli::Global;
use crate::cli::mcp::Add;
use crate::failure::Failure;
use crate::terminal::{self, GOOD, counted, styled};
use crate::workspace::{Workspace, unless_interrupted};

/// Timeout for connecting to a new server: a package manager may have to install the server first.
pub const CONNECT_TIMEOUT: Duration = Duration::from_mins(2);

/// Adds the server, and asks whether to approve its tools.
pub fn run(command: &Add, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    if command.url.is_none() && command.program.is_empty() {
        return Err(Failure::usage("the server has neither a command nor a URL")
            .hint("helve mcp add NAME -- COMMAND…, or helve mcp add NAME --url URL"));
    }
    no_secrets(command)?;
    let helve = workspace.helve();
    let file = write(command, workspace)?;
    if workspace.report().waiting.contains(&file) {
        done(global, &file, 0, false);
        return Err(Failure::new(
            "permission_denied",
            format_args!("Helve does not connect to the server `{}`: the folder is not trusted", command.name),
        )
        .hint("review what the folder would run with `helve trust`, then run `helve mcp approve`"));
    }
    let connected =
        workspace.block_on(unless_interrupted(async { tokio::time::timeout(CONNECT_TIMEOUT, helve.mcp_settled(&command.name)).await }));
    let found = helve.mcp_servers().into_iter().find(|server| server.name == command.name);
    let Some(server) = found.filter(|_| connected.is_ok()) else {
        super::super::show_diagnostics(&workspace.diagnostics());
        return Err(Failure::new("failed", format_args!("added the server `{}` to {file}, but cannot connect to it", command.name)));
    };
    if server.needs_login {
        done(global, &file, 0, false);
        return Err(Failure::new("permission_denied", format_args!("the server `{}` requires a login", server.name))
            .hint(format!("run `helve mcp login {0}`, then `helve mcp approve {0}`", server.name)));
    }
    if let Some(error) = &server.error {
        return Err(Failure::new(
            "unreachable",
            format_args!("added the server `{}` to {file}, but cannot connect to it: {error}", server.name),
        )
        .hint(format!("edit the file and run `helve mcp list`, or run `helve mcp remove {}`", server.name)));
    }
    if !global.json {
        review::show(&server, workspace, false);
    }
    let approved = command.yes || (!global.json && terminal::can_ask() && approve::ask(&server, workspace)?);
    if approved {
        helve.approve_mcp(&server)?;
    } else {
        terminal::note(&format!("The server's tools are not approved; `helve mcp approve {}` asks again.", command.name));
    }
    Ok(done(global, &file, server.offers.len(), approved))
}

/// Writes the server's file, and returns its path. By typing the command, the person trusts this server, and nothing else in the folder.
fn write(command: &Add, workspace: &Workspace) -> Result<String, Failure> {
    let server = NewServer {
        name: command.name.clone(),
        command: command.program.clone(),
        url: command.url.clone(),
        headers: read_headers(&command.header)?,
        env: command.env.clone(),
        prefix: command.prefix.clone(),
        trusted: command.trusted,
    };
    let before = workspace.report();
    let file = server.write(&before.root).map_err(|error| Failure::new("conflict", error))?;
    workspace.block_on(async {
        workspace.helve().reload().map_err(|error| Failure::new("storage", error))?;
        if before.trust.is_some_and(Trust::allows) {
            workspace.helve().trust_file(&file)?;
        }
        Ok::<_, Failure>(())
    })?;
    Ok(file)
}

fn done(global: &Global, file: &str, tools: usize, approved: bool) -> ExitCode {
    if global.json {
        terminal::json(json!({"file": file, "tools": tools, "approved": approved}));
    } else {
        let used = if approved { format!(", {} approved", counted(tools, "tool")) } else { String::new() };
        terminal::print(&format!("{} {file}{used}", styled(GOOD, "written:")));
    }
    ExitCode::SUCCESS
}

/// Rejects secrets in the arguments: project files are shared, and secrets belong in the environment.
fn no_secrets(command: &Add) -> Result<(), Failure> {
    let is_secret =
        |name: &str| secret::is_secret_variable(&name.replace('-', "_").to_ascii_uppercase()) || name.eq_ignore_ascii_case("authorization");
    for (written, at) in command.header.iter().map(|header| (header, ':')).chain(command.env.iter().map(|variable| (variable, '='))) {
        if let Some((name, value)) = written.split_once(at)
            && is_secret(name.trim())
            && !value.contains("${")
        {
            let name = printable::escape_line(name.trim());
            return Err(Failure::usage(format_args!("the value of `{name}` looks like a secret and would be written to a project file"))
                .hint("write `${NAME}` instead, and set NAME in the environment"));
        }
    }
    Ok(())
}

fn read_headers(written: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let read = |header: &String| header.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    let headers: Option<Vec<_>> = written.iter().map(read).collect();
    headers.ok_or_else(|| Failure::usage("invalid --header: write it as `Name: value`"))
}
