//! The HTTP+SSE transport of 2024: the server sends all messages on one stream. The stream names a URL to which the client posts messages.

use std::sync::{Arc, Weak};

use helve_fetch::{Bytes, Events, Exchange, HeaderMap, HeaderValue, Method, StreamingResponse, header};
use helve_mcp_wire::Message;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::site::Site;
use super::stream::{MAX_ERROR, event_error, is_stream, patience, read_all, read_messages, stream_patience};
use super::{OUTBOX, PostQueue, next_message};
use crate::client::error::RequestError;
use crate::client::limits::HANDSHAKE_TIMEOUT;
use crate::client::peer::{Outbox, Peer};

/// A connection over the HTTP+SSE transport. Dropping the value closes the connection.
pub(crate) struct SseEndpoint {
    to: Site,
    outbox: Arc<PostQueue>,
    stop: CancellationToken,
}

impl Drop for SseEndpoint {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl SseEndpoint {
    /// Opens the stream, and waits until it names the URL for messages.
    pub(crate) async fn open(site: &Site, peer: &Arc<Peer>) -> Result<Arc<Self>, RequestError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let exchange = Exchange { method: Method::GET, headers, body: Bytes::new(), may_repeat: true };
        let response = site.send(exchange, stream_patience()).await?;
        if !response.status.is_success() || !is_stream(&response) {
            let status = response.status.as_u16();
            return Err(RequestError::status(status, &read_all(response, MAX_ERROR).await.unwrap_or_default()));
        }
        let mut stream = ServerStream { response, events: Events::default(), endpoint: None };
        let (sender, messages) = mpsc::channel(OUTBOX);
        let outbox = Arc::new(PostQueue(sender));
        let endpoint = tokio::time::timeout(HANDSHAKE_TIMEOUT, stream.endpoint(peer, &outbox)).await;
        let endpoint = endpoint.map_err(|_| RequestError::TimedOut(HANDSHAKE_TIMEOUT))??;
        let stop = CancellationToken::new();
        let endpoint = Arc::new(Self { to: site.join(&endpoint)?, outbox: outbox.clone(), stop: stop.clone() });
        tokio::spawn(listen(stream, peer.clone(), outbox, stop.clone()));
        tokio::spawn(post(Arc::downgrade(&endpoint), messages, stop));
        Ok(endpoint)
    }

    /// Posts a message. The server sends the response on the stream.
    pub(crate) async fn send(&self, message: &Message) -> Result<(), RequestError> {
        let body = Bytes::from(message.write());
        let exchange = Exchange { method: Method::POST, headers: HeaderMap::new(), body, may_repeat: false };
        let response = self.to.send(exchange, patience(Some(HANDSHAKE_TIMEOUT))).await?;
        let status = response.status;
        let body = read_all(response, MAX_ERROR).await.unwrap_or_default();
        if status.is_success() { Ok(()) } else { Err(RequestError::status(status.as_u16(), &body)) }
    }

    pub(crate) fn outbox(&self) -> Arc<dyn Outbox> {
        self.outbox.clone()
    }
}

async fn post(endpoint: Weak<SseEndpoint>, mut messages: mpsc::Receiver<Message>, stop: CancellationToken) {
    while let Some(message) = next_message(&mut messages, &stop).await {
        let Some(endpoint) = endpoint.upgrade() else { return };
        if let Err(error) = endpoint.send(&message).await {
            tracing::debug!(%error, "MCP server did not accept a message");
        }
    }
}

async fn listen(mut stream: ServerStream, peer: Arc<Peer>, outbox: Arc<PostQueue>, stop: CancellationToken) {
    let ended = tokio::select! {
        ended = stream.read(&peer, &outbox, false) => ended,
        () = stop.cancelled() => return,
    };
    let why = ended.err().map_or_else(|| "the stream has ended".to_owned(), |error| error.to_string());
    peer.end(&RequestError::Disconnected(why));
}

/// The stream on which the server sends its messages.
struct ServerStream {
    response: StreamingResponse,
    events: Events,
    endpoint: Option<String>,
}

impl ServerStream {
    async fn endpoint(&mut self, peer: &Arc<Peer>, outbox: &Arc<PostQueue>) -> Result<String, RequestError> {
        self.read(peer, outbox, true).await?;
        self.endpoint.take().ok_or_else(|| RequestError::Protocol("the stream names no endpoint".to_owned()))
    }

    /// Reads messages until the stream ends, or, if `until_endpoint` is set, until the stream names the endpoint.
    async fn read(&mut self, peer: &Arc<Peer>, outbox: &Arc<PostQueue>, until_endpoint: bool) -> Result<(), RequestError> {
        let outbox: Arc<dyn Outbox> = outbox.clone();
        while let Some(chunk) = self.response.chunk().await? {
            let endpoint = &mut self.endpoint;
            let mut sink = |name: &str, data: &[u8]| {
                if name == "endpoint" {
                    *endpoint = Some(String::from_utf8_lossy(data).trim().to_owned());
                } else if !data.trim_ascii().is_empty() {
                    for message in read_messages(data)? {
                        peer.deliver(message, None, &outbox);
                    }
                }
                Ok(())
            };
            self.events.feed(&chunk, &mut sink).map_err(event_error)?;
            if until_endpoint && self.endpoint.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }
}
