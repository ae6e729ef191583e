//! `helve mcp serve`: serves tools to MCP clients over stdio or HTTP.

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
use crate::terminal;
use crate::workspace::{Workspace, unless_interrupted};

/// The variable with the bearer token that clients must send.
const TOKEN: &str = "HELVE_MCP_TOKEN";
/// Maximum number of concurrent background calls.
const WORKERS: usize = 4;
/// Time that servers have to connect before Helve reports tools that are not approved.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves until Ctrl-C, or until the client on stdio disconnects.
pub fn run(command: &Serve, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let helve = workspace.helve();
    let report = helve.project().unwrap_or_default();
    // Diagnostics of servers are reported once the servers have had time to connect.
    let in_files = report.diagnostics.iter().filter(|diagnostic| diagnostic.file.is_some());
    show_diagnostics(&in_files.cloned().collect::<Vec<_>>());
    if command.gateway {
        // The capabilities of a gateway depend on its servers, and are sent once, at initialization.
        workspace.settle();
    }
    // Without a store, calls that need approval are denied; all others run.
    let store = match workspace.store(global) {
        Ok(store) => Some(store),
        Err(failure) => {
            tracing::warn!(?failure, "no store: calls that need approval are denied");
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
        // One client must not use all slots for concurrent calls.
        let calls_at_once = (helve.executor().concurrency() / 2).max(1);
        let server =
            Server::new(backend, ServerOptions { token: token.clone().map(Into::into), hosts, calls_at_once, ..ServerOptions::default() });
        let stop = CancellationToken::new();
        let interrupted = stop.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                terminal::note("Stopping: running calls have a few seconds. Press Ctrl-C again to stop now.");
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
            ended = serve(&server, command, token.is_some(), &stop) => ended,
            () = work => Ok(()),
            () = helve.follow() => Ok(()),
            () = report_withheld(workspace) => Ok(()),
        };
        server.stop().await;
        if let Some(store) = &store {
            store.close().await?;
        }
        ended.map(|()| ExitCode::SUCCESS)
    })
}

/// Reports tools that are not approved, once the servers have had time to connect.
async fn report_withheld(workspace: &Workspace) {
    let _ = tokio::time::timeout(CONNECT_TIMEOUT, workspace.helve().catalogue().settled()).await;
    show_withheld(workspace);
    std::future::pending::<()>().await;
}

/// Serves on stdio or HTTP until `stop` is cancelled.
async fn serve(server: &Server, command: &Serve, has_token: bool, stop: &CancellationToken) -> Result<(), Failure> {
    let Some(address) = &command.http else {
        let result = server.stdio(tokio::io::stdin(), tokio::io::stdout(), stop.clone()).await;
        return result.map_err(|error| Failure::new("failed", error));
    };
    let listener = listen(address, has_token).await?;
    let bound = listener.local_addr().map_err(|error| Failure::new("unreachable", error))?;
    terminal::note_faintly(&format!("serving MCP at http://{bound}/mcp; Ctrl-C stops"));
    server.listen(listener, stop.clone()).await.map_err(|error| Failure::new("unreachable", error))
}

/// Listens on an address. Requires a token unless the address is a loopback address.
async fn listen(address: &str, has_token: bool) -> Result<TcpListener, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format_args!("`{address}` is not an address: {error}")).hint("write HOST:PORT, such as 127.0.0.1:8931")
    };
    let addresses: Vec<SocketAddr> = address.to_socket_addrs().map_err(|error| wrong(&error))?.collect();
    if !has_token && addresses.iter().any(|address| !address.ip().is_loopback()) {
        return Err(Failure::usage("this address is reachable from other machines, and no token is set")
            .hint(format!("listen on 127.0.0.1; or set {TOKEN} to a token that clients must send, and allow the host name with --host")));
    }
    TcpListener::bind(addresses.as_slice()).await.map_err(|error| {
        Failure::new("unreachable", format_args!("cannot listen on {address}: {error}")).hint("choose another port, or 0 for any")
    })
}
