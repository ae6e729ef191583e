//! A server made of raw bytes, so that it can misbehave. It takes one request for each connection.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What a request looked like on the wire.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Method, target and version.
    pub line: String,
    /// Headers; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, by its announced length.
    pub body: String,
}

impl Seen {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The path and query that were asked for.
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// A server on loopback. It ends when it is dropped.
pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// A server that leaves every connection to the handler, once the request is read.
    pub async fn start<H, F>(handler: H) -> Self
    where
        H: Fn(Seen, TcpStream) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        Self::on(TcpListener::bind("127.0.0.1:0").await.expect("a port"), handler)
    }

    /// The same, on a port that was taken before.
    pub fn on<H, F>(listener: TcpListener, handler: H) -> Self
    where
        H: Fn(Seen, TcpStream) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().expect("an address");
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let record = seen.clone();
        let handler = Arc::new(handler);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (record, handler) = (record.clone(), handler.clone());
                tokio::spawn(async move {
                    if let Some(request) = read_request(&mut stream).await {
                        record.lock().expect("a lock").push(request.clone());
                        handler(request, stream).await;
                    }
                });
            }
        });
        Self { address, seen, task }
    }

    /// A server that gives these answers, one after the other, and the last one forever.
    pub async fn answering<I>(answers: I) -> Self
    where
        I: IntoIterator<Item = Vec<u8>>,
    {
        let answers: Vec<Vec<u8>> = answers.into_iter().collect();
        let count = Mutex::new(0usize);
        Self::start(move |_, mut stream| {
            let mut count = count.lock().expect("a lock");
            let answer = answers[(*count).min(answers.len() - 1)].clone();
            *count += 1;
            async move {
                // A client that goes away early is no mistake of the server.
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("a lock").clone()
    }
}

/// An answer with the right length.
pub fn answer(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    answer_with(status, &format!("content-type: {content_type}\r\n"), body)
}

/// An answer with the right length and these header connections.
pub fn answer_with(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

/// Nothing in these tests takes longer, so nothing hangs.
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it ends in time")
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut connections = head.split("\r\n");
    let line = connections.next()?.to_owned();
    let headers: Vec<(String, String)> =
        connections.filter_map(|line| line.split_once(':')).map(|(key, value)| (key.to_lowercase(), value.trim().to_owned())).collect();
    let mut seen = Seen { line, headers, body: String::new() };
    let length: usize = seen.header("content-length").map_or(0, |length| length.parse().expect("a length"));
    while bytes.len() < end + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    seen.body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
    Some(seen)
}
