//! Who may come in, and what is no request.

use std::net::SocketAddr;

use bytes::Bytes;
use helve_mcp::server::{Server, ServerOptions};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::backend::Stage;
use super::client::{House, MODERN, modern, soon};

fn discover() -> (Vec<(&'static str, String)>, Value) {
    modern(1, "server/discover", json!({}))
}

async fn knock(house: &House, more: &[(&str, &str)]) -> u16 {
    let (headers, message) = discover();
    let mut all: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    all.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
    all.extend(more);
    house.post(&all, &message).await.status
}

#[tokio::test]
async fn other_names_and_pages_are_refused() {
    let house = House::open(ServerOptions::default()).await;
    let own = format!("127.0.0.1:{}", house.address.port());
    assert_eq!(knock(&house, &[]).await, 200);
    assert_eq!(knock(&house, &[("host", "localhost"), ("origin", "http://localhost:1")]).await, 200);
    assert_eq!(knock(&house, &[("host", "evil.example.com")]).await, 403);
    assert_eq!(knock(&house, &[("host", &own), ("origin", "http://evil.example.com")]).await, 403);
    let answer = house.send("POST /mcp", &[("host", "evil.example.com"), ("content-length", "999999999")], "").await;
    assert_eq!(answer.status, 403, "before anything is read");
    let body = answer.json().await;
    assert_eq!((body.get("id"), &body["error"]["code"]), (None, &json!(-32600)));
}

#[tokio::test]
async fn a_token_is_asked_for_where_there_is_one() {
    let house = House::open(ServerOptions { token: Some("open sesame".into()), ..ServerOptions::default() }).await;
    let (headers, message) = discover();
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = house.post(&headers, &message).await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(knock(&house, &[("authorization", "Bearer shut")]).await, 401);
    assert_eq!(knock(&house, &[("authorization", "Bearer open sesame")]).await, 200);
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_a_reason() {
    let house = House::open(ServerOptions { max_body: 1_000, ..ServerOptions::default() }).await;
    let json = ("content-type", "application/json");
    let post = async |headers: &[(&str, &str)], body: &str| {
        let answer = house.send("POST /mcp", headers, body).await;
        let status = answer.status;
        let body = answer.json().await;
        assert_ne!(body.get("id"), Some(&Value::Null), "{body}");
        (status, body["error"]["code"].as_i64().unwrap(), body.get("id").cloned())
    };
    assert_eq!(post(&[("content-type", "text/plain")], "{}").await, (415, -32600, None));
    assert_eq!(post(&[], "{}").await, (415, -32600, None));
    assert_eq!(post(&[json, ("accept", "text/html")], "{}").await, (406, -32600, None));
    assert_eq!(post(&[json], "{").await, (400, -32700, None));
    assert_eq!(post(&[json], r#"{"id":7}"#).await, (400, -32600, Some(json!(7))));
    assert_eq!(post(&[json], r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#).await, (400, -32600, None));
    assert_eq!(post(&[json, ("content-length", "1001")], "").await, (413, -32600, None));
    let chunked = format!("3e9\r\n{}\r\n0\r\n\r\n", "x".repeat(1_001));
    let mut stream = TcpStream::connect(house.address).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(format!("{head}{chunked}").as_bytes()).await.unwrap();
    let mut reply = [0; 12];
    soon(stream.read_exact(&mut reply)).await.unwrap();
    assert_eq!(&reply, b"HTTP/1.1 413", "a length that nobody announced counts too");
    assert_eq!(house.send("GET /elsewhere", &[], "").await.status, 404);
    let answer = house.send("PUT /mcp", &[], "").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, POST, DELETE")));
}

#[tokio::test]
async fn it_can_be_part_of_another_server() {
    let server = Server::new(Stage::new(), ServerOptions::default());
    let (headers, message) = discover();
    let mut request = Request::post("/anywhere").header("host", "localhost").header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::<Bytes>::from(message.to_string())).unwrap();
    // Such servers work in several threads.
    let reply = tokio::spawn(async move { server.http(request).await }).await.unwrap();
    assert_eq!(reply.status(), 200);
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(br#"{"jsonrpc":"2.0","id":1,"result""#), "{body:?}");
}

#[tokio::test]
async fn the_newer_era_has_no_other_methods() {
    let house = House::open(ServerOptions::default()).await;
    for verb in ["GET /mcp", "DELETE /mcp"] {
        let answer = house.send(verb, &[("mcp-protocol-version", MODERN), ("accept", "text/event-stream")], "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{verb}");
    }
}

/// A connection from another address of this machine, as if it were another machine.
async fn connect_as(house: &House, last: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    socket.connect(house.address).await.unwrap()
}

/// The beginning of what the server says, or nothing where it hung up.
async fn said(stream: &mut TcpStream) -> String {
    let mut reply = [0; 12];
    let count = soon(stream.read(&mut reply)).await.unwrap_or_default();
    String::from_utf8_lossy(&reply[..count]).into_owned()
}

const ELSEWHERE: &[u8] = b"GET /elsewhere HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test]
async fn one_connection_more_waits_until_another_only_waits() {
    let house = House::open(ServerOptions { max_connections: 1, ..ServerOptions::default() }).await;
    let session = house.session().await;
    let stream = house.stream(&session, &[]).await;
    assert_eq!(stream.status, 200);
    // The second connection is answered when the first is closed, and not before.
    let mut second = TcpStream::connect(house.address).await.unwrap();
    second.write_all(ELSEWHERE).await.unwrap();
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), second.readable());
    assert!(early.await.is_err());
    drop(stream);
    assert_eq!(said(&mut second).await, "HTTP/1.1 404");
    // By now it waits for another request, and gives way.
    let mut third = TcpStream::connect(house.address).await.unwrap();
    third.write_all(ELSEWHERE).await.unwrap();
    assert_eq!(said(&mut third).await, "HTTP/1.1 404");
}

#[tokio::test]
async fn half_heads_lock_nobody_out() {
    let house = House::open(ServerOptions { max_connections: 16, ..ServerOptions::default() }).await;
    let mut halves = Vec::new();
    for _ in 0..64 {
        let mut half = connect_as(&house, 2).await;
        half.write_all(b"POST /mcp HTTP/1.1\r\nhost: local").await.unwrap();
        halves.push(half);
    }
    for last in [1, 2, 3] {
        let mut good = connect_as(&house, last).await;
        good.write_all(ELSEWHERE).await.unwrap();
        assert_eq!(said(&mut good).await, "HTTP/1.1 404", "127.0.0.{last}");
    }
    assert_eq!(said(&mut halves[0]).await, "", "the oldest gave way");
}

#[tokio::test(start_paused = true)]
async fn who_never_ends_a_head_is_left() {
    let house = House::open(ServerOptions::default()).await;
    let mut silent = connect_as(&house, 1).await;
    let mut half = connect_as(&house, 1).await;
    half.write_all(b"POST /mcp HTTP/1.1\r\nhost: local").await.unwrap();
    let mut idle = connect_as(&house, 1).await;
    idle.write_all(ELSEWHERE).await.unwrap();
    for stream in [&mut silent, &mut half, &mut idle] {
        let mut all = Vec::new();
        // The clock goes on as soon as nobody has anything to do.
        let _ = stream.read_to_end(&mut all).await;
    }
}

#[tokio::test]
async fn a_body_with_two_ends_is_refused_and_the_connection_closed() {
    let house = House::open(ServerOptions::default()).await;
    let (length, encoding) = ("content-length: 4\r\n", "transfer-encoding: chunked\r\n");
    for headers in [format!("{length}{encoding}"), format!("{encoding}{length}"), format!("{length}x: y\r\n{length}{encoding}")] {
        let mut stream = TcpStream::connect(house.address).await.unwrap();
        // Behind a request that is fine, and with something hidden behind.
        let hidden = "0\r\n\r\nGET /hidden HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let request = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n{hidden}");
        stream.write_all(&[ELSEWHERE, request.as_bytes()].concat()).await.unwrap();
        let mut all = Vec::new();
        let _ = soon(stream.read_to_end(&mut all)).await;
        let all = String::from_utf8_lossy(&all);
        let statuses: Vec<_> = all.split("HTTP/1.1 ").skip(1).filter_map(|answer| answer.get(..3)).collect();
        assert_eq!(statuses, ["404", "400"], "{headers}: {all}");
    }
}

#[tokio::test]
async fn two_readings_of_one_message_are_none() {
    let house = House::open(ServerOptions::default()).await;
    let session = house.session().await;
    for (message, code, id) in [
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","name":"b"}}"#, -32602, Some(json!(5))),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","arguments":{"x":18446744073709551617}}}"#,
            -32602,
            Some(json!(5)),
        ),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","method":"tools/call","params":{}}"#, -32600, Some(json!(5))),
        (r#"{"jsonrpc":"2.0","id":5,"id":6,"method":"tools/list"}"#, -32600, None),
    ] {
        let headers = [("content-type", "application/json"), ("mcp-session-id", session.as_str())];
        let answer = house.send("POST /mcp", &headers, message).await;
        assert_eq!(answer.status, 400, "{message}");
        let body = answer.json().await;
        assert_eq!((body["error"]["code"].as_i64(), body.get("id").cloned()), (Some(code), id), "{message}");
    }
}

#[tokio::test]
async fn a_server_that_stops_ends_everything() {
    // Nothing runs, so nothing is waited for.
    let house = House::open(ServerOptions { grace: std::time::Duration::from_hours(1), ..ServerOptions::default() }).await;
    let session = house.session().await;
    let mut stream = house.stream(&session, &[]).await;
    assert_eq!(stream.status, 200);
    house.stop.cancel();
    assert_eq!(stream.raw_event().await, None);
    soon(house.running).await.unwrap().unwrap();
    assert_eq!(house.stage.seen(), [format!("ended {session}")]);
    assert!(TcpStream::connect(house.address).await.is_err());
}
