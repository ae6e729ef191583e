//! Encrypted connections to PostgreSQL: a server whose certificate cannot be verified is refused.
//!
//! A server of the test's own, with certificates that the test makes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that goes wrong should stop, one that is skipped should say so"
)]

mod server;

use std::time::Duration;

use helve_core::store::TaskFilter;
use helve_core::{HolderId, Store};
use helve_store::PostgresStore;

use self::server::Server;

/// Opens a store, and uses it.
async fn used(url: &str) -> Result<PostgresStore, String> {
    let store = PostgresStore::open(url).await.map_err(|error| error.to_string())?;
    store.keep(HolderId::mint(), Duration::from_mins(1), &[]).await.map_err(|error| error.to_string())?;
    store.tasks(TaskFilter::default().limit(1)).await.map_err(|error| error.to_string())?;
    Ok(store)
}

/// Why one cannot be opened.
async fn refused(url: &str) -> String {
    used(url).await.err().unwrap_or_else(|| panic!("{url} is not refused"))
}

#[tokio::test]
async fn a_server_that_proves_its_name_is_spoken_to_in_secret() {
    let Some(server) = Server::start("a_server_that_proves_its_name_is_spoken_to_in_secret") else { return };
    let root = format!("sslrootcert={}", server.root().display());

    for (name, options) in
        [("full", format!("sslmode=verify-full&{root}")), ("bare", root.clone()), ("try", format!("sslmode=prefer&{root}"))]
    {
        let store = used(&server.url("localhost", &format!("application_name={name}&{options}"))).await.expect("a store");
        assert_eq!(server.connections(name).await, (true, true), "{name}: those that work and the one that listens");
        drop(store);
    }
    // A password is tied to the connection.
    server.add_user("ada", "secret").await;
    let bound = server.url("localhost", &format!("application_name=bound&user=ada&password=secret&channel_binding=require&{root}"));
    let store = used(&bound).await.expect("a store");
    assert_eq!(server.connections("bound").await, (true, true));
    drop(store);

    let plain = used(&server.url("127.0.0.1", "application_name=plain&sslmode=disable")).await.expect("a store");
    assert_eq!(server.connections("plain").await, (false, false));
    drop(plain);
    let quiet = used(&server.url("127.0.0.1", "application_name=quiet")).await.expect("a store");
    assert_eq!(server.connections("quiet").await, (false, false), "on the same machine nothing is encrypted unless it is said");
    drop(quiet);
}

#[tokio::test]
async fn a_server_that_does_not_prove_its_name_is_not_spoken_to() {
    let Some(server) = Server::start("a_server_that_does_not_prove_its_name_is_not_spoken_to") else { return };
    let root = format!("sslrootcert={}", server.root().display());

    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        let unknown = refused(&server.url("localhost", &format!("sslmode={mode}"))).await;
        assert!(unknown.contains("unknown issuer") && unknown.contains("sslrootcert=FILE"), "{mode}: {unknown}");
        let other = refused(&server.url("127.0.0.1", &format!("sslmode={mode}&{root}"))).await;
        assert!(other.contains("TLS certificate verification failed for") && other.contains("127.0.0.1"), "{mode}: {other}");
    }
    let stranger = refused(&server.url("localhost", &format!("sslrootcert={}", server.stranger().display()))).await;
    assert!(stranger.contains("unknown issuer"), "{stranger}");

    server.without_tls();
    let none = refused(&server.url("localhost", &root)).await;
    assert!(none.contains("does not support TLS") && none.contains("sslmode=disable"), "{none}");
    let plain = used(&server.url("localhost", &format!("application_name=fallback&sslmode=prefer&{root}"))).await.expect("a store");
    assert_eq!(server.connections("fallback").await, (false, false), "it said that it has no TLS");
    drop(plain);
}
