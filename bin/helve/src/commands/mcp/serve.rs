//! `helve mcp serve`: the catalogue for MCP clients, over stdio or HTTP.

use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use helve::CancellationToken;
use helve::mcp::McpServing;
use helve::mcp::server::{Server, ServerOptions};
use helve::store::Worker;
use tokio::net::TcpListener;

use crate::cli::Global;
use crate::cli::mcp::Serve;
use crate::commands::{show_diagnostics, show_withheld};
use crate::failure::Failure;
use crate::terminal::{self, FAINT, styled};
use crate::workspace::{Workspace, unless_interrupted};

/// The variable that holds the token which clients must send.
const TOKEN: &str = "HELVE_MCP_TOKEN";
/// How many background calls run at once.
const WORKERS: usize = 4;
/// How long servers that are slow to connect are waited for before a word is said about the others.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves until it is stopped, or its client goes away.
pub fn run(command: &Serve, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let helve = workspace.helve();
    let report = helve.project().unwrap_or_default();
    // What is odd about servers is told when they have had their time.
    let in_files = report.diagnostics.iter().filter(|diagnostic| diagnostic.file.is_some());
    show_diagnostics(&in_files.cloned().collect::<Vec<_>>());
    if command.gateway {
        // What a gateway can do is said once, in the greeting, and depends on the servers behind it.
        workspace.settle();
    }
    // Without a store calls that wait for a person are refused, and all others work.
    let store = match workspace.store(global) {
        Ok(store) => Some(store),
        Err(failure) => {
            tracing::warn!(?failure, "there is no store: calls that must be approved are refused");
            None
        }
    };
    workspace.block_on(async {
        let sets = command.set.iter().map(String::as_str);
        let backend = helve
            .mcp_service(McpServing::new().sets(sets).gateway(command.gateway))
            .map_err(|error| Failure::new("not_found", error).hint("`helve sets` lists the tool sets"))?;
        let token = helve::internal::environment::var(TOKEN).filter(|token| !token.trim().is_empty());
        let hosts = report.allowed_hosts.iter().cloned().chain(command.host.iter().cloned()).collect();
        // One client must not take all that runs at the same time.
        let calls_at_once = (helve.executor().concurrency() / 2).max(1);
        let server =
            Server::new(backend, ServerOptions { token: token.clone().map(Into::into), hosts, calls_at_once, ..ServerOptions::default() });
        let stop = CancellationToken::new();
        let interrupted = stop.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                terminal::note("Ending: calls that run have a few seconds. Ctrl-C again ends them now.");
                interrupted.cancel();
                unless_interrupted(std::future::pending::<()>()).await;
            }
        });
        let work = async {
            if let Some(store) = &store {
                Worker::new(store.clone(), helve.executor().clone(), helve.catalogue().clone(), WORKERS).run(stop.clone()).await;
            }
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            ended = speak(&server, command, token.is_some(), &stop) => ended,
            () = work => Ok(()),
            () = helve.follow() => Ok(()),
            () = tell_withheld(workspace) => Ok(()),
        };
        server.stop().await;
        if let Some(store) = &store {
            store.close().await?;
        }
        ended.map(|()| ExitCode::SUCCESS)
    })
}

/// Says once, when the servers behind have had their time, which of their tools wait for approval.
async fn tell_withheld(workspace: &Workspace) {
    let _ = tokio::time::timeout(PATIENCE, workspace.helve().catalogue().settled()).await;
    show_withheld(workspace);
    std::future::pending::<()>().await;
}

/// Speaks with whoever is there, until they go or it is stopped.
async fn speak(server: &Server, command: &Serve, has_token: bool, stop: &CancellationToken) -> Result<(), Failure> {
    let Some(address) = &command.http else {
        let spoken = server.stdio(tokio::io::stdin(), tokio::io::stdout(), stop.clone()).await;
        return spoken.map_err(|error| Failure::new("failed", error));
    };
    let listener = listen(address, has_token).await?;
    let bound = listener.local_addr().map_err(|error| Failure::new("unreachable", error))?;
    terminal::note(&styled(FAINT, &format!("serving MCP at http://{bound}/mcp; Ctrl-C ends it")));
    server.listen(listener, stop.clone()).await.map_err(|error| Failure::new("unreachable", error))
}

/// Listens on an address. One that others can reach needs a token.
async fn listen(address: &str, has_token: bool) -> Result<TcpListener, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format_args!("`{address}` is not an address: {error}")).hint("write HOST:PORT, such as 127.0.0.1:8931")
    };
    let addresses: Vec<SocketAddr> = address.to_socket_addrs().map_err(|error| wrong(&error))?.collect();
    if !has_token && addresses.iter().any(|address| !address.ip().is_loopback()) {
        return Err(Failure::usage("others could reach this address, and nothing would keep them from calling tools")
            .hint(format!("listen on 127.0.0.1; or set {TOKEN} to a token that clients must send, and name this machine with --host")));
    }
    TcpListener::bind(addresses.as_slice()).await.map_err(|error| {
        Failure::new("unreachable", format_args!("{address} cannot be listened on: {error}")).hint("choose another port, or 0 for any")
    })
}
