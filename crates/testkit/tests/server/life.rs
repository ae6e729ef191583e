//! How a server begins and ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use helve_testkit::{ModelServer, Reply};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::client::{open, parse, question};

fn address(server: &ModelServer) -> String {
    server.origin().trim_start_matches("http://").to_owned()
}

#[test]
fn it_serves_tests_that_are_not_async() {
    let server = ModelServer::start_blocking([Reply::text("hi"), Reply::silence()]);
    assert_eq!(server.url(), format!("{}/v1", server.origin()));
    assert!(server.url().starts_with("http://127.0.0.1:"));
    let (path, body) = question("chat", true);
    let body = body.to_string();
    let request = format!("POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let ask = || {
        let mut connection = TcpStream::connect(address(&server)).expect("a connection");
        connection.write_all(request.as_bytes()).expect("a request that is sent");
        connection
    };
    let mut bytes = Vec::new();
    ask().read_to_end(&mut bytes).expect("an answer");
    assert_eq!(parse(&bytes).data()[1]["choices"][0]["delta"]["content"], "hi");
    let mut waiting = ask();
    while server.requests().len() < 2 {
        std::thread::yield_now();
    }
    let address = address(&server);
    drop(server);
    assert!(TcpStream::connect(address).is_err(), "nobody listens after the drop");
    let mut rest = Vec::new();
    let _ = waiting.read_to_end(&mut rest);
    assert!(rest.is_empty(), "who waited is let go");
}

#[tokio::test]
async fn it_ends_with_its_owner() {
    let server = ModelServer::start([Reply::silence()]).await;
    let (path, body) = question("chat", false);
    let mut waiting = open(&server, "POST", &path, "", &body.to_string()).await;
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let address = address(&server);
    drop(server);
    let mut rest = Vec::new();
    let _ = timeout(Duration::from_secs(20), waiting.read_to_end(&mut rest)).await.expect("an end");
    assert!(rest.is_empty());
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens after the drop");
}

#[tokio::test]
async fn a_blocking_server_can_be_dropped_in_async_code() {
    let server = ModelServer::start_blocking(Reply::text("hi"));
    let (path, body) = question("gemini", true);
    let got = crate::client::post(&server, &path, &body).await;
    assert_eq!(got.data()[0]["candidates"][0]["content"]["parts"][0]["text"], "hi");
}

#[tokio::test]
async fn a_client_may_leave_in_the_middle() {
    let server = ModelServer::start([Reply::text("x".repeat(10_000)).with_pause(Duration::from_millis(1)), Reply::text("hi")]).await;
    let (path, body) = question("chat", true);
    let mut first = open(&server, "POST", &path, "", &body.to_string()).await;
    first.read_u8().await.expect("the beginning of an answer");
    drop(first);
    assert_eq!(crate::client::post(&server, &path, &body).await.status, 200);
}
