//! [`StreamingResponse`], a response that is read in chunks as they arrive, within limits.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::time::Sleep;

use crate::connection::Connection;
use crate::error::FetchError;
use crate::pool::ConnectionPool;

/// The timeouts and the maximum size of a streamed response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// Timeout until the response headers have arrived, including the connection.
    pub first_byte: Duration,
    /// Timeout between two chunks of the body.
    pub idle: Duration,
    /// Timeout for the whole body.
    pub total: Duration,
    /// Maximum size of the body, in bytes.
    pub bytes: u64,
}

/// A response whose headers have arrived. Dropping it before the end of the body closes the connection.
pub struct StreamingResponse {
    /// The HTTP status code.
    pub status: StatusCode,
    /// The response headers.
    pub headers: HeaderMap,
    body: Incoming,
    connection: Option<Connection>,
    pool: ConnectionPool,
    clock: Clock,
    /// Number of bytes left until the size limit.
    room: u64,
    limits: StreamLimits,
}

impl std::fmt::Debug for StreamingResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamingResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The timer of a response. It is reset only when it fires, not for every chunk.
struct Clock {
    last: Instant,
    end: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl Clock {
    /// Becomes ready when no chunk has arrived for `idle`, or when the whole response has taken too long.
    fn poll_late(&mut self, idle: Duration, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            let left = (self.last + idle).min(self.end).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(tokio::time::Instant::now() + left);
        }
    }
}

impl StreamingResponse {
    pub(crate) fn new(response: hyper::Response<Incoming>, connection: Connection, pool: ConnectionPool, limits: StreamLimits) -> Self {
        let (head, body) = response.into_parts();
        let now = Instant::now();
        let clock = Clock { last: now, end: now + limits.total, sleep: Box::pin(tokio::time::sleep(limits.idle)) };
        let (status, headers) = (head.status, head.headers);
        Self { status, headers, body, connection: Some(connection), pool, clock, room: limits.bytes, limits }
    }

    /// Polls for the next chunk of the body. Returns `None` at the end of the body.
    ///
    /// # Errors
    /// Returns an error if the response is incomplete or invalid, times out, or is too large.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, FetchError>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(Ok(None)) };
        let timeout = |connection: &Connection, after| Err(FetchError::Timeout { origin: connection.origin.clone(), after });
        let mut driven = false;
        loop {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.clock.last = Instant::now();
                    if self.clock.last > self.clock.end {
                        return Poll::Ready(timeout(connection, self.limits.total));
                    }
                    let Some(room) = self.room.checked_sub(data.len() as u64) else {
                        let (origin, limit) = (connection.origin.clone(), self.limits.bytes);
                        return Poll::Ready(Err(FetchError::TooLarge { origin, limit }));
                    };
                    self.room = room;
                    return Poll::Ready(Ok(Some(data)));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(FetchError::of_hyper(&error, connection.origin.clone()))),
                Poll::Ready(None) => {
                    if let Some(connection) = self.connection.take() {
                        self.pool.put_back(connection);
                    }
                    return Poll::Ready(Ok(None));
                }
                Poll::Pending if !driven => {
                    driven = true;
                    connection.driver.poll(cx);
                }
                Poll::Pending => {
                    ready!(self.clock.poll_late(self.limits.idle, cx));
                    return Poll::Ready(timeout(connection, self.limits.idle));
                }
            }
        }
    }

    /// Returns the next chunk of the body, or `None` at the end of the body.
    ///
    /// # Errors
    /// Returns an error if the response is incomplete or invalid, times out, or is too large.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Returns the value of a header, or `None` if the header is absent or contains non-ASCII characters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
