//! The byte stream of a connection. Splits incoming bytes into requests, and disconnects a client that does not read.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{self, Sleep};

use super::connections::Connection;
use super::framing::Framing;
use super::response::ResponseBody;

/// A TCP stream that returns the bytes of one request at a time, and fails if the client does not read for too long.
pub(super) struct Socket {
    stream: TcpStream,
    connection: Arc<Connection>,
    framing: Framing,
    /// Bytes of the next request that have already arrived.
    ahead: Bytes,
    stall: Duration,
    /// The timer of the write timeout; `None` while the client reads fast enough.
    late: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub fn new(stream: TcpStream, connection: Arc<Connection>, stall: Duration) -> Self {
        Self { stream, connection, framing: Framing::default(), ahead: Bytes::new(), stall, late: None }
    }

    fn watch<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.late = None;
            return written;
        }
        let late = self.late.get_or_insert_with(|| Box::pin(time::sleep(self.stall)));
        late.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Socket {
    /// Reads no further than the end of a request, so that the HTTP library does not parse the next head before this request was handled.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        let start = buf.filled().len();
        if socket.ahead.is_empty() {
            ready!(Pin::new(&mut socket.stream).poll_read(cx, buf))?;
        } else {
            let count = socket.ahead.len().min(buf.remaining());
            buf.put_slice(&socket.ahead[..count]);
            socket.ahead.advance(count);
        }
        let came = &buf.filled()[start..];
        if came.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let (taken, head) = socket.framing.take(came);
        socket.connection.received(head, !socket.framing.is_between());
        if taken < came.len() {
            // This copy is rare: few clients send the next request before they have received the response.
            socket.ahead = [&came[taken..], &socket.ahead].concat().into();
            buf.set_filled(start + taken);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let written = Pin::new(&mut socket.stream).poll_write(cx, buf);
        socket.watch(written, cx)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let written = Pin::new(&mut socket.stream).poll_write_vectored(cx, bufs);
        socket.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// The body of a response. Dropping it records that the connection waits for the next request.
pub(super) struct TrackedBody {
    body: ResponseBody,
    connection: Arc<Connection>,
}

impl TrackedBody {
    pub fn new(body: ResponseBody, connection: Arc<Connection>) -> Self {
        connection.respond();
        Self { body, connection }
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.connection.rest();
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
