//! The official conformance suite, for both versions of the protocol that Helve speaks.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::over_http::free_port;
use crate::peers::Peers;
use crate::running::{Running, until};
use crate::scene::{Scene, folder};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// A command that gets a port and serves the suite's own tools there; it does not come with the suite.
const FIXTURE: &str = "HELVE_TEST_MCP_FIXTURE";

/// Runs a part of the suite; every scenario that a revision requires must pass.
fn pass(peers: &Peers, part: &[&str]) {
    for revision in REVISIONS {
        let out = folder();
        let mut suite = peers.conformance();
        suite.args(part).args(["--requirements", revision, "--timeout", "60000", "-o"]).arg(out.path());
        let (status, stdout, stderr) = Running::start(&mut suite).finish();
        let summary = stdout.split_once("SUMMARY").map_or(stdout.as_str(), |(_, summary)| summary);
        assert!(status.success(), "{revision}: {summary}{stderr}");
    }
}

/// Helve's client as the suite drives it: an example that is built with the tests of the workspace.
fn driver() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_helve")).with_file_name("examples").join("conformance_client")
}

#[test]
fn the_client_passes_what_is_required() {
    let Some(peers) = Peers::find("the_client_passes_what_is_required") else { return };
    let driver = driver();
    if !driver.exists() {
        eprintln!("SKIPPED: the_client_passes_what_is_required needs {}: cargo build -p helve-mcp --examples", driver.display());
        return;
    }
    pass(&peers, &["client", "--command", &driver.to_string_lossy()]);
}

#[test]
fn the_server_passes_what_is_required() {
    let Some(peers) = Peers::find("the_server_passes_what_is_required") else { return };
    let Ok(fixture) = std::env::var(FIXTURE) else {
        eprintln!("SKIPPED: the_server_passes_what_is_required needs {FIXTURE}, a command that serves the suite's tools on a port");
        return;
    };
    let (words, port) = (fixture.split_whitespace().collect::<Vec<_>>(), free_port());
    let _fixture = Running::start(std::process::Command::new(words[0]).args(&words[1..]).arg(port.to_string()));
    until("the fixture", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    let file = json!({"url": format!("http://127.0.0.1:{port}/mcp"), "trusted": true, "prefix": ""});
    let scene = Scene::new(&[]).with("fixture", file).agreed();
    let (_server, address) = scene.serve(&["--gateway"]);
    pass(&peers, &["server", "--url", &address]);
}
