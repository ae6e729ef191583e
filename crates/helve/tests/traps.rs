//! What used to go wrong without a word: a server that is not there, a second store, built-in tools that nobody asked for.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use helve::mcp::{ConnectError, Mcp};
use helve::prelude::*;

#[tokio::test]
async fn an_mcp_server_that_is_not_there_is_an_error() {
    let missing = Mcp::command("missing", ["no-such-program-anywhere"]).connect().await.expect_err("no program");
    assert!(matches!(&missing, ConnectError::Failed { server, .. } if server == "missing"), "{missing}");
    assert!(missing.to_string().contains("no-such-program-anywhere"), "{missing}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let nobody = Mcp::http("nobody", format!("http://127.0.0.1:{port}/mcp")).connect().await.expect_err("no server");
    assert!(matches!(nobody, ConnectError::Failed { .. }), "{nobody}");
    let wrong = Mcp::http("wrong", "not an address").connect().await.expect_err("no address");
    assert!(matches!(wrong, ConnectError::Definition { .. }), "{wrong}");
}

#[tokio::test]
async fn a_second_store_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let helve = Helve::builder().store(address("one.db")).build().await.expect("a store");
    let again = helve.open_store(Some(&address("one.db"))).await.expect("the same store");
    assert_eq!(again.holder(), helve.executor().store().expect("a store").holder());
    assert!(helve.open_store(None).await.is_ok(), "whoever names none takes the one that is there");
    let other = helve.open_store(Some(&address("two.db"))).await.expect_err("another store");
    assert!(other.to_string().contains("another store"), "{other}");
    let own = helve::store::StoreHandle::in_memory();
    assert!(matches!(helve.agent(ScriptedModel::new()).with_store(own), Err(AgentError::OtherStore)));
}

#[tokio::test]
async fn built_in_tools_appear_where_someone_asks_for_them() {
    assert!(Helve::new().catalogue().list().is_empty());
    let asked = Helve::builder().builtins().build().await.expect("built-in tools");
    assert!(asked.catalogue().get("calculate").is_some());
    let folder = tempfile::tempdir().expect("a folder");
    let open = |builtins| helve::project::OpenOptions::new().state(None).builtins(builtins).open(folder.path()).expect("a folder");
    assert!(open(false).catalogue().list().is_empty());
    assert!(open(true).catalogue().get("calculate").is_some());
}

#[tokio::test]
async fn workers_without_a_store_are_an_error() {
    let error = Helve::builder().workers(1).build().await.expect_err("no store");
    assert!(matches!(error, helve::BuildError::NoStore), "{error}");
}
