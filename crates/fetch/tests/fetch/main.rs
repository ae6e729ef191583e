//! The fetch against servers on loopback that behave, and that do not.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_fetch::{Fetch, FetchError, FetchLimits, FetchOptions, Lookup, Method, Reach, Refusal, Request, Response, read_url};
use helve_testkit::{RawServer as Server, raw_response as answer, raw_response_with as answer_with, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

const CANARY: &str = "canary-0123456789";

fn request(server: &Server) -> Request {
    let mut request = Request::new(Method::GET, read_url(&server.url(&format!("/start?key={CANARY}"))).expect("an address"));
    request.reach = Reach::Any;
    request.headers.insert("authorization", format!("Bearer {CANARY}").parse().expect("a value"));
    request.headers.insert("x-api-key", CANARY.parse().expect("a value"));
    request
}

/// Sends, and looks whether what comes of it keeps its secrets.
async fn send(request: Request) -> Result<Response, FetchError> {
    let result = within(Fetch::default().send(request)).await;
    if let Err(error) = &result {
        let text = format!("{error} {error:?}");
        assert!(!text.contains("canary") && !text.contains("start"), "{text}");
    }
    result
}

async fn send_to(answers: Vec<u8>) -> Result<Response, FetchError> {
    send(request(&Server::responding([answers]).await)).await
}

#[tokio::test]
async fn a_plain_request_works() {
    let server = Server::responding([answer("200 OK", "text/plain", "hello")]).await;
    let response = send(request(&server)).await.expect("an answer");
    assert_eq!((response.status.as_u16(), response.body.as_slice(), response.truncated), (200, &b"hello"[..], false));
    assert_eq!(response.header("Content-Type"), Some("text/plain"));
    let seen = &server.requests()[0];
    assert_eq!(seen.target(), format!("/start?key={CANARY}"));
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    assert!(seen.header("user-agent").is_some_and(|agent| agent.starts_with("helve/")));
    assert!(seen.header("cookie").is_none() && seen.header("referer").is_none());
}

/// Security case S25. The environment of a process cannot be changed safely, so the test above runs in another one.
#[test]
fn proxies_of_the_environment_are_ignored() {
    let mut child = Command::new(std::env::current_exe().expect("this test"));
    child.args(["--exact", "a_plain_request_works"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        child.env(name, "http://127.0.0.1:9");
    }
    let output = child.env_remove("no_proxy").env_remove("NO_PROXY").output().expect("the test runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn an_answer_without_end_is_read_to_the_limit_only() {
    let written = Arc::new(AtomicU64::new(0));
    let (stopped, mut stops) = mpsc::channel(1);
    let count = written.clone();
    let server = Server::start(move |_, mut stream| {
        let (count, stopped) = (count.clone(), stopped.clone());
        async move {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 0x10000], b"\r\n"].concat();
            while count.load(Ordering::Relaxed) < 1 << 30 && stream.write_all(&chunk).await.is_ok() {
                count.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            }
            let _ = stopped.send(()).await;
        }
    })
    .await;
    let mut request = request(&server);
    request.limits.bytes = 100_000;
    let origin = format!("http://{}", server.address());
    assert_eq!(send(request).await.err(), Some(FetchError::TooLarge { origin, limit: 100_000 }));
    within(stops.recv()).await;
    // What the sockets of both sides hold was written, but not much more.
    let written = written.load(Ordering::Relaxed);
    assert!(written < 32 << 20, "{written}");
}

#[tokio::test]
async fn an_announced_giant_is_not_waited_for() {
    let result = send_to(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n".to_vec()).await;
    assert!(matches!(result, Err(FetchError::TooLarge { .. })), "{result:?}");
}

#[tokio::test]
async fn a_large_failure_is_cut_and_keeps_its_status() {
    let response = send_to(answer("500 Oops", "text/plain", &"x".repeat(200_000))).await.expect("an answer");
    assert_eq!((response.status.as_u16(), response.body.len(), response.truncated), (500, 64 << 10, true));
}

#[tokio::test]
async fn time_is_limited_whatever_the_server_does() {
    for server in [Server::silent().await, Server::dripping().await] {
        let mut request = request(&server);
        request.limits.time = Duration::from_millis(200);
        let result = send(request).await;
        assert!(matches!(result, Err(FetchError::Timeout { .. })), "{result:?}");
    }
}

#[tokio::test]
async fn broken_answers_are_told_apart() {
    let many = "x-another: header\r\n".repeat(100_000);
    let cases = [
        ("closes at once", Vec::new(), true),
        ("ends early", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort".to_vec(), true),
        ("ends inside a chunk", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nshort".to_vec(), true),
        ("no length", b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\nx".to_vec(), false),
        ("two lengths", b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx".to_vec(), false),
        ("no HTTP", b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec(), false),
        ("headers without end", format!("HTTP/1.1 200 OK\r\n{many}\r\n").into_bytes(), false),
        ("one long header", format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)).into_bytes(), false),
    ];
    for (name, bytes, closed) in cases {
        let error = send_to(bytes).await.expect_err(name);
        let as_expected = if closed { matches!(error, FetchError::Closed { .. }) } else { matches!(error, FetchError::Protocol { .. }) };
        assert!(as_expected, "{name}: {error:?}");
    }
}

#[tokio::test]
async fn what_comes_after_the_announced_length_is_no_part_of_the_answer() {
    let smuggled = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    let server = Server::responding([smuggled.as_bytes().to_vec(), answer("200 OK", "text/plain", "second")]).await;
    let fetch = Fetch::default();
    let first = within(fetch.send(request(&server))).await.expect("an answer");
    assert_eq!(first.body, b"hello");
    let second = within(fetch.send(request(&server))).await;
    assert!(second.is_ok_and(|second| second.body == b"second"));
}

struct NoSuchName;

impl Lookup for NoSuchName {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Err(io::Error::other("no such name")) })
    }
}

#[tokio::test]
async fn nobody_there() {
    let fetch = Fetch::new(FetchOptions { lookup: Arc::new(NoSuchName), ..FetchOptions::default() });
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    for (url, why) in
        [(format!("http://nobody.example/?key={CANARY}"), "no such name"), (format!("http://{closed}/?key={CANARY}"), "refused")]
    {
        let mut request = Request::new(Method::GET, read_url(&url).expect("an address"));
        request.reach = Reach::Any;
        let error = within(fetch.send(request)).await.expect_err("nobody is there");
        assert!(matches!(&error, FetchError::Unreachable { reason, .. } if reason.contains(why)), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
}

#[tokio::test]
async fn https_is_spoken_where_it_is_asked_for() {
    let server = Server::responding([answer("200 OK", "text/plain", "plain")]).await;
    let mut request = request(&server);
    request.url.set_scheme("https").expect("a scheme");
    request.limits.time = Duration::from_millis(300);
    let result = send(request).await;
    assert!(matches!(result, Err(FetchError::Unreachable { .. } | FetchError::Timeout { .. })), "{result:?}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn credentials_stay_behind_when_the_port_changes() {
    let other = Server::responding([answer("200 OK", "text/plain", "other")]).await;
    let here = Server::responding([answer_with("302 Found", &format!("location: {}\r\n", other.url("/next")), "")]).await;
    let response = send(request(&here)).await.expect("an answer");
    assert_eq!((response.body.as_slice(), response.url.as_str()), (&b"other"[..], other.url("/next").as_str()));
    let seen = format!("{:?}", other.requests());
    assert!(seen.contains("GET /next") && !seen.contains("canary"), "{seen}");
}

#[tokio::test]
async fn redirects_are_followed_by_the_rules() {
    let here = Server::responding([
        answer_with("307 Again", "location: /a\r\n", ""),
        answer_with("303 See", "location: b?c=d\r\n", ""),
        answer("200 OK", "text/plain", "end"),
    ])
    .await;
    let mut post = request(&here);
    post.method = Method::POST;
    post.body = Some(b"body".to_vec());
    send(post).await.expect("an answer");
    let seen: Vec<(String, String)> = here.requests().into_iter().map(|seen| (seen.line, seen.body)).collect();
    let expected =
        [(format!("POST /start?key={CANARY} HTTP/1.1"), "body"), ("POST /a HTTP/1.1".into(), "body"), ("GET /b?c=d HTTP/1.1".into(), "")];
    assert_eq!(seen, expected.map(|(line, body)| (line, body.to_owned())));
    assert_eq!(here.requests()[2].header("x-api-key"), Some(CANARY));
    assert_eq!(here.requests()[2].header("content-length"), None);
}

#[tokio::test]
async fn redirects_end() {
    let here = Server::responding([answer_with("302 Found", "location: /again\r\n", "")]).await;
    let result = send(request(&here)).await;
    assert!(matches!(result, Err(FetchError::TooManyRedirects { limit: 5, .. })), "{result:?}");
    assert_eq!(here.requests().len(), 6);
    let mut once = request(&here);
    once.limits = FetchLimits { redirects: 0, ..FetchLimits::default() };
    assert!(matches!(send(once).await, Err(FetchError::TooManyRedirects { limit: 0, .. })));
}

#[tokio::test]
async fn redirects_to_other_places_are_refused() {
    let other = Server::responding([answer("200 OK", "text/plain", "inside")]).await;
    let local = other.url("/").replace("127.0.0.1", "localhost");
    for (location, refusal) in [
        ("file:///etc/passwd", Refusal::Scheme("file".into())),
        (local.as_str(), Refusal::LocalName("localhost".into())),
        ("http://[::ffff:127.0.0.1]/", Refusal::NotPublic("[::ffff:7f00:1]".into())),
    ] {
        let here = Server::responding([answer_with("302 Found", &format!("location: {location}\r\n"), "")]).await;
        assert_eq!(send(request(&here)).await.err(), Some(FetchError::Refused(refusal)), "{location}");
    }
    assert!(other.requests().is_empty());
}

struct Loopback;

impl Lookup for Loopback {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

/// Security cases S14, S18 and S20 through the whole of it: the name is looked up, and nothing is connected to.
#[tokio::test]
async fn a_public_name_that_leads_inside_is_refused() {
    let server = Server::responding([answer("200 OK", "text/plain", "inside")]).await;
    let fetch = Fetch::new(FetchOptions { lookup: Arc::new(Loopback), ..FetchOptions::default() });
    let named = server.url("/").replace("127.0.0.1", "public.example");
    let mut request = Request::new(Method::GET, read_url(&named).expect("an address"));
    let refused = Err(FetchError::Refused(Refusal::NotPublic("public.example".into())));
    assert_eq!(within(fetch.send(request.clone())).await.map(|_| ()), refused);
    assert!(server.requests().is_empty());
    // The operator's own choice is another matter, and does not open the way for others.
    request.reach = Reach::Any;
    assert!(within(fetch.send(request.clone())).await.is_ok());
    request.reach = Reach::Public;
    assert_eq!(within(fetch.send(request)).await.map(|_| ()), refused);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn dropping_the_future_closes_the_connection() {
    let (reports, mut reported) = mpsc::channel(4);
    let server = Server::start(move |_, mut stream| {
        let reports = reports.clone();
        async move {
            let _ = reports.send("asked").await;
            let end = stream.read_u8().await.expect_err("nothing more comes");
            assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
            let _ = reports.send("closed").await;
        }
    })
    .await;
    let fetch = Fetch::default();
    let work = tokio::spawn({
        let (fetch, request) = (fetch.clone(), request(&server));
        async move { fetch.send(request).await }
    });
    assert_eq!(within(reported.recv()).await, Some("asked"));
    work.abort();
    assert_eq!(within(reported.recv()).await, Some("closed"));
}
