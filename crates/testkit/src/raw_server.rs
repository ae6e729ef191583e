//! An HTTP server made of raw bytes, so that it can misbehave.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it was sent.
#[derive(Debug, Clone, Default)]
pub struct RawRequest {
    /// Method, target and version.
    pub line: String,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl RawRequest {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The path and query.
    #[must_use]
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// Reads a request. Returns `None` if the client closes the connection before its end.
    pub async fn read(stream: &mut TcpStream) -> Option<Self> {
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
        let mut lines = head.split("\r\n");
        let line = lines.next()?.to_owned();
        let headers = lines.filter_map(|line| line.split_once(':')).map(|(key, value)| (key.to_lowercase(), value.trim().to_owned()));
        let mut request = Self { line, headers: headers.collect(), body: String::new() };
        let length: usize = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
        while bytes.len() < end + 4 + length {
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        }
        request.body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
        Some(request)
    }
}

/// A server on loopback that reads one request per connection and then does what a test wants. It ends when it is dropped.
#[derive(Debug)]
pub struct RawServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<RawRequest>>>,
    task: JoinHandle<()>,
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[expect(clippy::expect_used, reason = "a test without its server should stop")]
impl RawServer {
    /// A server that passes each request and its connection to the handler.
    ///
    /// # Panics
    /// If no loopback port is free.
    pub async fn start<H, F>(handler: H) -> Self
    where
        H: Fn(RawRequest, TcpStream) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        Self::on(TcpListener::bind("127.0.0.1:0").await.expect("a port"), handler)
    }

    /// Like [`start`](Self::start), on a listener that was bound before.
    ///
    /// # Panics
    /// If the listener has no address.
    pub fn on<H, F>(listener: TcpListener, handler: H) -> Self
    where
        H: Fn(RawRequest, TcpStream) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().expect("an address");
        let requests = Arc::<Mutex<Vec<RawRequest>>>::default();
        let (recorded, handler) = (requests.clone(), Arc::new(handler));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (recorded, handler) = (recorded.clone(), handler.clone());
                tokio::spawn(async move {
                    if let Some(request) = RawRequest::read(&mut stream).await {
                        recorded.lock().push(request.clone());
                        handler(request, stream).await;
                    }
                });
            }
        });
        Self { address, requests, task }
    }

    /// A server that sends these responses one after the other, then the last one forever.
    ///
    /// # Panics
    /// If there are no responses.
    pub async fn responding<I>(responses: I) -> Self
    where
        I: IntoIterator<Item = Vec<u8>>,
    {
        let responses: Vec<Vec<u8>> = responses.into_iter().collect();
        let count = Mutex::new(0usize);
        Self::start(move |_, mut stream| {
            let mut count = count.lock();
            let response = responses[(*count).min(responses.len() - 1)].clone();
            *count += 1;
            async move {
                // The client may have closed the connection.
                let _ = stream.write_all(&response).await;
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    /// A server that never responds. Connections stay open until the client closes them.
    pub async fn silent() -> Self {
        Self::start(|_, mut stream| async move {
            let _ = stream.read_u8().await;
        })
        .await
    }

    /// A server that announces a body of 1000 bytes and sends a byte every 20 ms.
    pub async fn dripping() -> Self {
        Self::start(|_, mut stream| async move {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far: the first one of each connection.
    #[must_use]
    pub fn requests(&self) -> Vec<RawRequest> {
        self.requests.lock().clone()
    }
}

/// A response with a `Content-Type` and the right length.
#[must_use]
pub fn raw_response(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    raw_response_with(status, &format!("content-type: {content_type}\r\n"), body)
}

/// A response with these header lines and the right length.
#[must_use]
pub fn raw_response_with(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

/// Fails a test that hangs.
///
/// # Panics
/// If the work takes longer than 20 seconds.
#[expect(clippy::expect_used, reason = "a test that hangs should stop")]
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it ends in time")
}
