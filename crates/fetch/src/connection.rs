//! Exchanges whose answers are read as they come.
//!
//! A long response comes in thousands of small pieces. Each piece goes from the socket to its reader within one task,
//! because whoever reads a response also drives its connection; a connection that nobody reads from lies idle.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use reqwest::header::{ACCEPT_ENCODING, HOST, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Method, StatusCode, Url};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::address::{self, Reach};
use crate::error::FetchError;
use crate::fetch::FetchOptions;
use crate::lookup::resolve;

const MAX_HEADERS: usize = 100;
const IDLE_LINES: usize = 32;
/// What a connection reads at once; idle ones keep that much room.
const BUFFER: usize = 64 << 10;
/// Servers hang up on idle connections after a minute or so.
const IDLE_FOR: Duration = Duration::from_secs(45);
/// Some servers do so after five seconds. What must not be sent twice is not risked on a connection that lay idle so long.
const IDLE_BRIEFLY: Duration = Duration::from_secs(4);

/// Keeps connections for exchanges whose answers are read as they come. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub struct ConnectionPool(Arc<Inner>);

#[derive(Default)]
struct Inner {
    options: FetchOptions,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    idle: Mutex<Vec<(Instant, Connection)>>,
}

impl std::fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionPool").finish_non_exhaustive()
    }
}

/// How long is waited for what, and how much is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From the request's last byte to the response's first.
    pub first_byte: Duration,
    /// Between two pieces of a response.
    pub idle: Duration,
    /// For the whole of a response.
    pub total: Duration,
    /// The bytes of a response.
    pub bytes: u64,
}

/// Where requests go, and what goes with each.
#[derive(Debug, Clone)]
pub struct Target {
    url: Url,
    origin: String,
    path: Uri,
    headers: HeaderMap,
    reach: Reach,
}

/// One request to a target.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// What to do.
    pub method: Method,
    /// Headers of this request alone; they replace those of the target.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whether the other side may get it twice: a connection that lay idle may break just when it is used again, and then nobody can
    /// say whether the request arrived.
    pub may_repeat: bool,
}

impl Exchange {
    /// A body that is posted.
    #[must_use]
    pub fn post(body: Bytes) -> Self {
        Self { method: Method::POST, headers: HeaderMap::new(), body, may_repeat: true }
    }

    fn request(&self, target: &Target) -> hyper::Request<Full<Bytes>> {
        let mut request = hyper::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = target.path.clone();
        *request.headers_mut() = target.headers.clone();
        request.headers_mut().extend(self.headers.clone());
        request
    }
}

struct Connection {
    origin: String,
    reach: Reach,
    send: SendRequest<Full<Bytes>>,
    driven: Driven,
}

/// A connection that is polled by whoever needs it, and gone when it ended: only then do those who wait for it hear of it.
struct Driven(Option<http1::Connection<TokioIo<Io>, Full<Bytes>>>);

impl Driven {
    fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.0
            && Pin::new(connection).poll(cx).is_ready()
        {
            self.0 = None;
        }
    }
}

type Io = Either<TcpStream, Box<TlsStream<TcpStream>>>;

impl ConnectionPool {
    /// Connections with options.
    #[must_use]
    pub fn new(options: FetchOptions) -> Self {
        Self(Arc::new(Inner { options, ..Inner::default() }))
    }

    /// Reads an address and puts a request's head together, once for all requests that go there.
    ///
    /// # Errors
    /// Where the address cannot be used, or may not be reached.
    pub fn target(&self, url: &Url, headers: &HeaderMap, reach: Reach) -> Result<Target, FetchError> {
        address::check_form(url)?;
        address::check_reach(url, reach)?;
        let bad = |reason: &dyn std::fmt::Display| FetchError::BadUrl { reason: reason.to_string() };
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let mut headers = headers.clone();
        headers.insert(HOST, HeaderValue::from_str(&host).map_err(|error| bad(&error))?);
        headers.insert(USER_AGENT, HeaderValue::from_str(&self.0.options.user_agent).map_err(|error| bad(&error))?);
        // Nothing is unpacked, so a small response cannot become a large one.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(Target { url: url.clone(), origin: address::origin(url), path: path.parse().map_err(|error| bad(&error))?, headers, reach })
    }

    /// Posts a body and gives back the response once its head is there. No redirect is followed.
    ///
    /// Dropping the future or the response closes the connection.
    ///
    /// # Errors
    /// [`FetchError`] says by variant why there is no response.
    pub async fn post(&self, target: &Target, body: Bytes, patience: Patience) -> Result<StreamingResponse, FetchError> {
        self.send(target, &Exchange::post(body), patience).await
    }

    /// Sends a request and gives back the response once its head is there. No redirect is followed.
    ///
    /// Dropping the future or the response closes the connection.
    ///
    /// # Errors
    /// [`FetchError`] says by variant why there is no response.
    pub async fn send(&self, target: &Target, exchange: &Exchange, patience: Patience) -> Result<StreamingResponse, FetchError> {
        let Target { origin, reach, .. } = target;
        let of_hyper = |error: hyper::Error| FetchError::of_hyper(&error, origin.clone());
        let sent = async {
            let idle = if exchange.may_repeat { IDLE_FOR } else { IDLE_BRIEFLY };
            if let Some(mut connection) = self.take(origin, *reach, idle) {
                // The other side may have hung up on an idle connection at any moment.
                match connection.exchange(exchange.request(target)).await {
                    Ok(response) => return Ok::<_, FetchError>((connection, response)),
                    Err(Broken { error, was_sent: true }) if !exchange.may_repeat => return Err(of_hyper(error)),
                    Err(_) => {}
                }
            }
            let mut connection = self.dial(&target.url, origin.clone(), *reach).await?;
            let response = connection.exchange(exchange.request(target)).await.map_err(|broken| of_hyper(broken.error))?;
            Ok((connection, response))
        };
        let (connection, response) = tokio::time::timeout(patience.first_byte, sent)
            .await
            .map_err(|_| FetchError::Timeout { origin: origin.clone(), after: patience.first_byte })??;
        let (head, body) = response.into_parts();
        let now = Instant::now();
        let clock =
            Clock { last: now, end: now + patience.total, limit: patience.idle, sleep: Box::pin(tokio::time::sleep(patience.idle)) };
        Ok(StreamingResponse {
            status: head.status,
            headers: head.headers,
            body,
            connection: Some(connection),
            connections: self.clone(),
            clock,
            room: patience.bytes,
            limit: patience.bytes,
            total: patience.total,
        })
    }

    async fn dial(&self, url: &Url, origin: String, reach: Reach) -> Result<Connection, FetchError> {
        let unreachable = |reason: String| FetchError::Unreachable { origin: origin.clone(), reason };
        let connect = async {
            let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
            let port = url.port_or_known_default().unwrap_or(80);
            let addresses: Vec<IpAddr> = match host.parse() {
                Ok(address) => vec![address],
                Err(_) => resolve(&*self.0.options.lookup, host, reach).await.map_err(|error| match error.downcast() {
                    Ok(refusal) => FetchError::Refused(*refusal),
                    Err(error) => unreachable(error.to_string()),
                })?,
            };
            let socket = dial_any(&addresses, port).await.map_err(|error| unreachable(error.to_string()))?;
            // A response's pieces are small; waiting for more of them would only delay.
            let _ = socket.set_nodelay(true);
            if url.scheme() != "https" {
                return Ok::<Io, FetchError>(Either::Left(socket));
            }
            let tls = self.0.tls.get_or_init(|| crate::client::tls().map(Arc::new).map_err(|error| error.to_string()));
            let tls = tls.as_ref().map_err(|reason| FetchError::Setup { reason: reason.clone() })?;
            let name = ServerName::try_from(host.to_owned()).map_err(|error| FetchError::BadUrl { reason: error.to_string() })?;
            let secured = TlsConnector::from(tls.clone()).connect(name, socket).await.map_err(|error| unreachable(error.to_string()))?;
            Ok(Either::Right(Box::new(secured)))
        };
        let io: Io = tokio::time::timeout(self.0.options.connect_timeout, connect)
            .await
            .map_err(|_| unreachable("nobody answers there".to_owned()))??;
        let mut builder = http1::Builder::new();
        builder.max_headers(MAX_HEADERS).max_buf_size(BUFFER);
        let (send, connection) = builder.handshake(TokioIo::new(io)).await.map_err(|error| FetchError::of_hyper(&error, origin.clone()))?;
        Ok(Connection { origin, reach, send, driven: Driven(Some(connection)) })
    }

    /// The connection that lay idle least, if that was not too long.
    fn take(&self, origin: &str, reach: Reach, idle_for: Duration) -> Option<Connection> {
        let mut idle = self.0.idle.lock();
        idle.retain(|(since, _)| since.elapsed() < IDLE_FOR);
        let fits = |(since, connection): &(Instant, Connection)| {
            connection.origin == origin && connection.reach == reach && since.elapsed() < idle_for
        };
        let place = idle.iter().rposition(fits)?;
        Some(idle.remove(place).1)
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.0.idle.lock();
        if idle.len() < IDLE_LINES {
            idle.push((Instant::now(), connection));
        }
    }
}

/// The first of these addresses that answers.
async fn dial_any(addresses: &[IpAddr], port: u16) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no addresses");
    for address in addresses {
        match TcpStream::connect(SocketAddr::new(*address, port)).await {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Why a connection gave no response.
struct Broken {
    error: hyper::Error,
    /// Whether something of the request may have reached the other side.
    was_sent: bool,
}

impl Connection {
    async fn exchange(&mut self, request: hyper::Request<Full<Bytes>>) -> Result<hyper::Response<Incoming>, Broken> {
        let Self { send, driven, .. } = self;
        // A connection that lay idle does not know yet that the other side has hung up.
        poll_fn(|cx| {
            driven.poll(cx);
            Poll::Ready(())
        })
        .await;
        drive(driven, send.ready()).await.map_err(|error| Broken { error, was_sent: false })?;
        drive(driven, send.try_send_request(request)).await.map_err(|mut broken| {
            let was_sent = broken.take_message().is_none();
            Broken { error: broken.into_error(), was_sent }
        })
    }
}

/// Polls some work and the connection it needs within one task.
async fn drive<T>(driven: &mut Driven, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        driven.poll(cx);
        work.as_mut().poll(cx)
    })
    .await
}

/// A response whose head is there. Dropping it before its end closes the connection.
pub struct StreamingResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: Incoming,
    connection: Option<Connection>,
    connections: ConnectionPool,
    clock: Clock,
    room: u64,
    limit: u64,
    total: Duration,
}

impl std::fmt::Debug for StreamingResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamingResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Says when nothing came for too long. Its timer is set again only when it goes off, not for every piece.
struct Clock {
    last: Instant,
    end: Instant,
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl Clock {
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            let now = Instant::now();
            let left = (self.last + self.limit).min(self.end).saturating_duration_since(now);
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(tokio::time::Instant::now() + left);
        }
    }
}

impl StreamingResponse {
    /// The next piece of the body; nothing at its end.
    ///
    /// # Errors
    /// Where the response breaks off, stalls or is too large.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, FetchError>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(Ok(None)) };
        let mut driven = false;
        loop {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.clock.last = Instant::now();
                    if self.clock.last > self.clock.end {
                        return Poll::Ready(Err(FetchError::Timeout { origin: connection.origin.clone(), after: self.total }));
                    }
                    let Some(room) = self.room.checked_sub(data.len() as u64) else {
                        return Poll::Ready(Err(FetchError::TooLarge { origin: connection.origin.clone(), limit: self.limit }));
                    };
                    self.room = room;
                    return Poll::Ready(Ok(Some(data)));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(FetchError::of_hyper(&error, connection.origin.clone()))),
                Poll::Ready(None) => {
                    if let Some(connection) = self.connection.take() {
                        self.connections.put_back(connection);
                    }
                    return Poll::Ready(Ok(None));
                }
                Poll::Pending if !driven => {
                    driven = true;
                    connection.driven.poll(cx);
                }
                Poll::Pending => {
                    ready!(self.clock.poll_late(cx));
                    return Poll::Ready(Err(FetchError::Timeout { origin: connection.origin.clone(), after: self.clock.limit }));
                }
            }
        }
    }

    /// The next piece of the body; nothing at its end.
    ///
    /// # Errors
    /// Where the response breaks off, stalls or is too large.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// A header as text, where it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
