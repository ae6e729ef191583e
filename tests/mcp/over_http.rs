//! Servers of others at an address.

use std::net::TcpListener;
use std::process::Command;

use serde_json::json;

use crate::peers::Peers;
use crate::running::Running;
use crate::scene::Scene;
use crate::servers::{EVERYTHING, call_everything, expect_server};

/// A port that nobody has now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// Starts the server that shows everything; gives the port on which it listens.
fn start(peers: &Peers, transport: &str, says: &str) -> (Running, u16) {
    let (words, port) = (peers.everything(transport), free_port());
    let mut server = Running::start(Command::new(&words[0]).args(&words[1..]).env("PORT", port.to_string()));
    server.wait_for(says, &port.to_string());
    (server, port)
}

#[test]
fn the_server_that_shows_everything_shows_it_over_http() {
    let Some(peers) = Peers::find("the_server_that_shows_everything_shows_it_over_http") else { return };
    let (_server, port) = start(&peers, "streamableHttp", "listening on port ");
    let file = json!({"url": format!("http://127.0.0.1:{port}/mcp"), "trusted": true});
    let scene = Scene::new(&[]).with("everything", file).agreed();
    expect_server(&scene, "everything", "2025-11-25", &EVERYTHING);
    call_everything(&scene);
}

#[test]
fn the_server_that_shows_everything_shows_it_over_the_older_http() {
    let Some(peers) = Peers::find("the_server_that_shows_everything_shows_it_over_the_older_http") else { return };
    let (_server, port) = start(&peers, "sse", "running on port ");
    let file = json!({"url": format!("http://127.0.0.1:{port}/sse"), "trusted": true});
    let scene = Scene::new(&[]).with("everything", file).agreed();
    call_everything(&scene);
}
