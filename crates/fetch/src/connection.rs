//! An HTTP/1 connection.
//!
//! The task that reads a response also polls the connection, so that the thousands of small chunks of a long response need no switch
//! between tasks. An idle connection is not polled.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::address::Reach;
use crate::client::MAX_HEADERS;
use crate::error::FetchError;

/// Maximum size of a connection's buffer, in bytes. Idle connections keep their buffer.
const BUFFER: usize = 64 << 10;

/// A socket, with TLS or without.
pub(crate) type Io = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A connection to an origin.
pub(crate) struct Connection {
    pub(crate) origin: String,
    pub(crate) reach: Reach,
    pub(crate) driver: Driver,
    send: SendRequest<Full<Bytes>>,
}

/// The part of a connection that does the I/O. The inner connection is dropped when it ends, because only then do pending requests
/// fail.
pub(crate) struct Driver(Option<http1::Connection<TokioIo<Io>, Full<Bytes>>>);

impl Driver {
    /// Polls the connection, and drops it if it has ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.0
            && Pin::new(connection).poll(cx).is_ready()
        {
            self.0 = None;
        }
    }

    /// Polls a future and the connection that it needs, in the current task.
    async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            self.poll(cx);
            work.as_mut().poll(cx)
        })
        .await
    }
}

/// Why a request on a connection failed.
pub(crate) struct ExchangeError {
    pub(crate) error: hyper::Error,
    /// Whether a part of the request may have reached the server.
    pub(crate) was_sent: bool,
}

impl Connection {
    /// Starts HTTP/1 on a connected socket.
    pub(crate) async fn open(io: Io, origin: String, reach: Reach) -> Result<Self, FetchError> {
        let mut builder = http1::Builder::new();
        builder.max_headers(MAX_HEADERS).max_buf_size(BUFFER);
        let (send, connection) = builder.handshake(TokioIo::new(io)).await.map_err(|error| FetchError::of_hyper(&error, origin.clone()))?;
        Ok(Self { origin, reach, send, driver: Driver(Some(connection)) })
    }

    /// Sends a request and returns the response as soon as its headers have arrived.
    pub(crate) async fn exchange(&mut self, request: hyper::Request<Full<Bytes>>) -> Result<hyper::Response<Incoming>, ExchangeError> {
        let Self { send, driver, .. } = self;
        // An idle connection is not polled, so it has not noticed yet whether the server has closed it.
        poll_fn(|cx| {
            driver.poll(cx);
            Poll::Ready(())
        })
        .await;
        driver.drive(send.ready()).await.map_err(|error| ExchangeError { error, was_sent: false })?;
        driver.drive(send.try_send_request(request)).await.map_err(|mut failed| {
            let was_sent = failed.take_message().is_none();
            ExchangeError { error: failed.into_error(), was_sent }
        })
    }
}

/// Tries the addresses in order and returns the first connection that succeeds, else the last error.
pub(crate) async fn connect_any(addresses: &[IpAddr], port: u16) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the host has no IP addresses");
    for address in addresses {
        match TcpStream::connect(SocketAddr::new(*address, port)).await {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}
