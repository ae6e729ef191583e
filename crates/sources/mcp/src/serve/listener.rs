//! The server on a port of its own.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use helve_mcp_wire::CODES;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{self, Sleep};
use tokio_util::sync::CancellationToken;

use super::hub::error;
use super::server::Server;
use super::stream::{ReplyBody, refuse};

/// Where the server is, on a port of its own.
const PATH: &str = "/mcp";
/// How long the head of a request may take, also that of the next one on a connection.
const HEAD_TIME: Duration = Duration::from_mins(1);
const MAX_HEADERS: usize = 100;
/// What a connection reads at once; heads must fit.
const BUFFER: usize = 64 << 10;

impl Server {
    /// Serves whoever connects, at the path `/mcp`, until the token fires. Then the whole server stops.
    ///
    /// # Errors
    /// Where the listener has no address.
    pub async fn listen(&self, listener: TcpListener, cancel: CancellationToken) -> io::Result<()> {
        let bound = Some(listener.local_addr()?.ip()).filter(|address| !address.is_unspecified());
        let server = Self { hub: self.hub.clone(), bound };
        let room = Arc::new(Semaphore::new(self.hub.options.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
        let mut connections = JoinSet::new();
        loop {
            let accepted = async {
                let place = room.clone().acquire_owned().await;
                (place, listener.accept().await)
            };
            tokio::select! {
                () = cancel.cancelled() => break,
                () = self.hub.stopping.cancelled() => break,
                (place, accepted) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let server = server.clone();
                        connections.spawn(async move {
                            server.connection(stream).await;
                            drop(place);
                        });
                    }
                    // Too many open files, mostly: some of them will be closed.
                    Err(_) => time::sleep(Duration::from_millis(10)).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop(listener);
        self.stop().await;
        // What is written to the end by now is written; whoever does not read it has had time.
        let written = async { while connections.join_next().await.is_some() {} };
        let _ = time::timeout(self.hub.options.grace, written).await;
        Ok(())
    }

    async fn connection(&self, stream: TcpStream) {
        // Events are small; waiting for more of them would only delay. Where that cannot be, they are still sent.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(Patient { stream, stall: self.hub.options.stall, late: None });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_headers(MAX_HEADERS).max_buf_size(BUFFER);
        let mut connection = pin!(builder.serve_connection(io, service_fn(|request| self.route(request))));
        // An error here is a client that left.
        tokio::select! {
            _ = connection.as_mut() => return,
            () = self.hub.stopping.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Response<ReplyBody>, Infallible> {
        if request.uri().path() == PATH {
            return Ok(self.http(request).await);
        }
        let problem = error(CODES.request, "There is nothing here; the server is at `/mcp`");
        Ok(refuse(StatusCode::NOT_FOUND, None, problem))
    }
}

/// A connection that breaks when the other side takes nothing for too long.
struct Patient {
    stream: TcpStream,
    stall: Duration,
    /// Goes off when it was too long; there is none while the other side keeps up.
    late: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn watch<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.late = None;
            return written;
        }
        let late = self.late.get_or_insert_with(|| Box::pin(time::sleep(self.stall)));
        late.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let patient = self.get_mut();
        let written = Pin::new(&mut patient.stream).poll_write(cx, buf);
        patient.watch(written, cx)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let patient = self.get_mut();
        let written = Pin::new(&mut patient.stream).poll_write_vectored(cx, bufs);
        patient.watch(written, cx)
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
