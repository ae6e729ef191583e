//! Serves HTTP clients on a TCP port.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use helve_mcp_wire::{CODES, RpcError};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::connections::{Connection, Connections, client};
use super::handle::Server;
use super::response::refuse;
use super::slots::Address;
use super::socket::{Socket, TrackedBody};

/// The URL path of the endpoint.
const PATH: &str = "/mcp";
const MAX_HEADERS: usize = 100;
/// Maximum size of the read buffer of a connection in bytes. The head of a request must fit.
const BUFFER: usize = 64 << 10;

impl Server {
    /// Serves clients at the path `/mcp` until `cancel` is cancelled, then stops the whole server.
    ///
    /// # Errors
    /// Returns an error if the address of the listener cannot be determined.
    pub async fn listen(&self, listener: TcpListener, cancel: CancellationToken) -> io::Result<()> {
        let bound = Some(listener.local_addr()?.ip()).filter(|address| !address.is_unspecified());
        let server = Self { hub: self.hub.clone(), bound };
        let connections = Connections::new(self.hub.options.max_connections);
        let mut running = JoinSet::new();
        loop {
            let accepted = async {
                let (stream, from) = listener.accept().await?;
                io::Result::Ok((stream, connections.enter(client(from.ip())).await))
            };
            tokio::select! {
                () = cancel.cancelled() => break,
                () = self.hub.stopping.cancelled() => break,
                accepted = accepted => if let Ok((stream, entered)) = accepted {
                    let server = server.clone();
                    running.spawn(async move { server.connection(stream, &entered.connection).await });
                } else {
                    // The usual reason is too many open files, so this closes a connection.
                    connections.make_room();
                    time::sleep(Duration::from_millis(10)).await;
                },
            }
            while running.try_join_next().is_some() {}
        }
        drop(listener);
        self.stop().await;
        // Waits for responses that are still being written, but not for clients that do not read.
        let written = async { while running.join_next().await.is_some() {} };
        let _ = time::timeout(self.hub.options.grace, written).await;
        Ok(())
    }

    async fn connection(&self, stream: TcpStream, connection: &Arc<Connection>) {
        // Nagle's algorithm would delay events, which are small. A failure only costs time.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(Socket::new(stream, connection.clone(), self.hub.options.stall));
        let mut builder = http1::Builder::new();
        // The connection table enforces the timeout of heads, which excludes the pause between requests.
        builder.header_read_timeout(None).max_headers(MAX_HEADERS).max_buf_size(BUFFER);
        let service = service_fn(|request| self.route(request, connection));
        let mut serving = pin!(builder.serve_connection(io, service));
        // Ignores errors: they mean that the client disconnected.
        tokio::select! {
            _ = serving.as_mut() => return,
            () = connection.displaced.cancelled() => return,
            () = connection.overdue() => return,
            () = self.hub.stopping.cancelled() => serving.as_mut().graceful_shutdown(),
        }
        let _ = serving.await;
    }

    fn route<'c>(
        &'c self,
        mut request: Request<Incoming>,
        connection: &'c Arc<Connection>,
    ) -> impl Future<Output = Result<Response<TrackedBody>, Infallible>> + 'c {
        // Reads the head before the future runs, because by then there may be another head.
        let head = connection.begin();
        async move {
            let mut response = if head.is_ambiguous() {
                let problem = RpcError::new(CODES.request, "A request must not have both `Content-Length` and `Transfer-Encoding`");
                refuse(StatusCode::BAD_REQUEST, None, problem)
            } else if request.uri().path() == PATH {
                request.extensions_mut().insert(Address(connection.client));
                self.http(request).await
            } else {
                refuse(StatusCode::NOT_FOUND, None, RpcError::new(CODES.request, "Not found; the server is at `/mcp`"))
            };
            if head.is_last() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| TrackedBody::new(body, connection.clone())))
        }
    }
}
