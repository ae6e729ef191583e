//! Connects to a server over Streamable HTTP: the client posts each message, and the response is one message or a stream of messages.

mod site;
mod sse_transport;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use helve_core::Backoff;
use helve_fetch::{Bytes, Events, Exchange, HeaderMap, HeaderName, HeaderValue, Method, StreamingResponse, header};
use helve_mcp_wire::{Era, HEADERS, Message, encode_header, name_of};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::stream::{MAX_ERROR, MessageStream, drain, is_stream, patience, read_all, read_messages, stream_patience};
use super::error::RequestError;
use super::limits::{HANDSHAKE_TIMEOUT, MAX_MESSAGE};
use super::peer::{Outbox, Peer, PendingRequest};

pub(crate) use site::Site;
pub(super) use sse_transport::SseEndpoint;

const SESSION: HeaderName = HeaderName::from_static(HEADERS.session);
const VERSION: HeaderName = HeaderName::from_static(HEADERS.version);
const LAST_EVENT: HeaderName = HeaderName::from_static(HEADERS.last_event);
const METHOD: HeaderName = HeaderName::from_static(HEADERS.method);
const NAME: HeaderName = HeaderName::from_static(HEADERS.name);
/// Maximum number of consecutive attempts to resume a broken stream without receiving a message.
const MAX_RESUMES: u32 = 5;
/// Delay before a broken stream is resumed, if the server does not set one.
const RESUME_DELAY: Duration = Duration::from_secs(1);
const LONGEST_RESUME_DELAY: Duration = Duration::from_mins(1);
/// Maximum time that the handshake waits for the session's own stream. Some servers open it only when they have something to send.
const STREAM_TIMEOUT: Duration = Duration::from_millis(500);
/// Capacity of the queue of messages to post.
const OUTBOX: usize = 64;
/// Timeout of the request that ends a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to a server over HTTP: a session in the legacy era, only a URL in the modern era.
pub(super) struct HttpEndpoint {
    site: Arc<Site>,
    peer: Arc<Peer>,
    headers: RwLock<ProtocolHeaders>,
    outbox: Arc<PostQueue>,
    stop: CancellationToken,
}

/// The protocol headers of each request.
#[derive(Clone)]
struct ProtocolHeaders {
    era: Era,
    version: Option<HeaderValue>,
    session: Option<HeaderValue>,
}

/// The queue of messages to post.
struct PostQueue(mpsc::Sender<Message>);

impl Outbox for PostQueue {
    fn put(&self, message: Message) {
        if self.0.try_send(message).is_err() {
            tracing::debug!("MCP server is too slow; a message to it was dropped");
        }
    }
}

impl Drop for HttpEndpoint {
    fn drop(&mut self) {
        self.stop.cancel();
        let headers = self.headers();
        if let (Some(_), Ok(runtime)) = (&headers.session, tokio::runtime::Handle::try_current()) {
            // Allows the server to free the session. An error does not matter.
            let (site, headers) = (self.site.clone(), headers.write());
            runtime.spawn(async move {
                let exchange = Exchange { method: Method::DELETE, headers, body: Bytes::new(), may_repeat: true };
                let _ = site.send(exchange, patience(Some(DELETE_TIMEOUT))).await;
            });
        }
    }
}

impl ProtocolHeaders {
    fn write(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(version) = &self.version {
            headers.insert(VERSION, version.clone());
        }
        if let Some(session) = &self.session {
            headers.insert(SESSION, session.clone());
        }
        headers
    }
}

impl HttpEndpoint {
    pub(super) fn new(site: Arc<Site>, peer: &Arc<Peer>) -> Arc<Self> {
        let (sender, mut messages) = mpsc::channel(OUTBOX);
        let headers = RwLock::new(ProtocolHeaders { era: Era::Modern, version: None, session: None });
        let stop = CancellationToken::new();
        let endpoint = Arc::new(Self { site, peer: peer.clone(), headers, outbox: Arc::new(PostQueue(sender)), stop: stop.clone() });
        let weak = Arc::downgrade(&endpoint);
        tokio::spawn(async move {
            while let Some(message) = next_message(&mut messages, &stop).await {
                let Some(endpoint) = weak.upgrade() else { return };
                if let Err(error) = endpoint.send(&message).await {
                    tracing::debug!(%error, "MCP server did not accept a message");
                }
            }
        });
        endpoint
    }

    /// Sets the protocol version that each request states. With an empty version, requests state none, as before a legacy handshake.
    pub(super) fn set_version(&self, era: Era, version: &str) {
        let mut headers = self.headers.write();
        headers.era = era;
        headers.version = if version.is_empty() { None } else { HeaderValue::from_str(version).ok() };
    }

    fn headers(&self) -> ProtocolHeaders {
        self.headers.read().clone()
    }

    pub(super) fn outbox(&self) -> Arc<dyn Outbox> {
        self.outbox.clone()
    }

    /// Posts a message without waiting for a response.
    pub(super) async fn send(&self, message: &Message) -> Result<(), RequestError> {
        let response = self.post(message, &[], Some(HANDSHAKE_TIMEOUT)).await?;
        if !response.status.is_success() {
            return Err(self.refusal(response).await);
        }
        drain(response);
        Ok(())
    }

    /// Posts a request, and reads messages until the response arrives.
    pub(super) async fn request(
        &self,
        request: &Message,
        pending: &mut PendingRequest<'_>,
        headers: &[(String, String)],
        time: Option<Duration>,
    ) -> Result<Value, RequestError> {
        let response = self.post(request, headers, time).await?;
        if !response.status.is_success() {
            return Err(self.refusal(response).await);
        }
        self.remember_session(&response);
        if is_stream(&response) {
            return self.follow(response, pending).await;
        }
        let body = read_all(response, MAX_MESSAGE as u64).await?;
        for message in read_messages(&body)? {
            self.peer.deliver(message, Some(pending.id), &self.outbox());
        }
        pending.poll_response().unwrap_or_else(|| Err(RequestError::Protocol("the body holds no response to the request".to_owned())))
    }

    async fn post(&self, message: &Message, extra: &[(String, String)], time: Option<Duration>) -> Result<StreamingResponse, RequestError> {
        let protocol = self.headers();
        let mut headers = protocol.write();
        if protocol.era == Era::Modern {
            put_standard(&mut headers, message);
            for (name, value) in extra {
                if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                    headers.insert(name, value);
                }
            }
        }
        // Never repeats a request that the server may have processed, because a call could take effect twice.
        let exchange = Exchange { method: Method::POST, headers, body: Bytes::from(message.write()), may_repeat: false };
        self.site.send(exchange, patience(time)).await
    }

    fn remember_session(&self, response: &StreamingResponse) {
        let Some(session) = response.headers.get(SESSION) else { return };
        let mut headers = self.headers.write();
        if headers.era == Era::Legacy && headers.session.is_none() {
            headers.session = Some(session.clone());
        }
    }

    /// Converts a response with an error status to an error.
    async fn refusal(&self, response: StreamingResponse) -> RequestError {
        let status = response.status.as_u16();
        let body = read_all(response, MAX_ERROR).await.unwrap_or_default();
        if status == 404 && self.headers().session.is_some() {
            return RequestError::SessionExpired;
        }
        match Message::read(&body) {
            Ok(Message::Response { result: Err(error), .. }) => RequestError::Rpc(error),
            _ => RequestError::status(status, &body),
        }
    }

    /// Reads a stream until the response arrives. In the legacy era, resumes a broken stream.
    async fn follow(&self, response: StreamingResponse, pending: &mut PendingRequest<'_>) -> Result<Value, RequestError> {
        let mut stream = MessageStream::default();
        let mut response = Some(response);
        let mut resumes = 0;
        loop {
            if let Some(response) = response.take() {
                let read = stream.read(response, &self.peer, Some(&mut *pending), &self.outbox()).await;
                if let Some(result) = pending.poll_response() {
                    return result;
                }
                if read.as_ref().is_ok_and(|count| *count > 0) {
                    resumes = 0;
                }
                if stream.events.last_id().is_empty() || self.headers().era == Era::Modern {
                    let ended = || RequestError::Disconnected("the stream ended before the response".to_owned());
                    return Err(read.err().unwrap_or_else(ended));
                }
            }
            resumes += 1;
            if resumes > MAX_RESUMES {
                return Err(RequestError::Disconnected(format!("the stream broke {resumes} times before the response")));
            }
            tokio::time::sleep(resume_delay(&stream.events, RESUME_DELAY)).await;
            response = match self.stream(stream.events.last_id()).await {
                Ok(response) if response.status.is_success() && is_stream(&response) => Some(response),
                Ok(response) if response.status.is_client_error() => return Err(self.refusal(response).await),
                Ok(_) | Err(_) => None,
            };
        }
    }

    /// Requests the session's own stream, or, with the id of the last event, the rest of a broken stream.
    async fn stream(&self, last_id: &str) -> Result<StreamingResponse, RequestError> {
        let mut headers = self.headers().write();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let (false, Ok(id)) = (last_id.is_empty(), HeaderValue::from_str(last_id)) {
            headers.insert(LAST_EVENT, id);
        }
        let exchange = Exchange { method: Method::GET, headers, body: Bytes::new(), may_repeat: true };
        self.site.send(exchange, stream_patience()).await
    }

    /// Listens on the session's own stream until the connection closes. The server may send requests on this stream during a call, so this
    /// function waits briefly until the stream is open.
    pub(super) async fn listen(self: &Arc<Self>) {
        let (weak, stop) = (Arc::downgrade(self), self.stop.clone());
        let (open, is_open) = oneshot::channel();
        let mut open = Some(open);
        tokio::spawn(async move {
            let mut stream = MessageStream::default();
            let mut backoff = Backoff::new(RESUME_DELAY, LONGEST_RESUME_DELAY);
            loop {
                let Some(endpoint) = weak.upgrade() else { return };
                let (peer, outbox) = (endpoint.peer.clone(), endpoint.outbox());
                let response = tokio::select! {
                    response = endpoint.stream(stream.events.last_id()) => response,
                    () = stop.cancelled() => return,
                };
                // The handshake may have stopped waiting.
                let _ = open.take().map(|open| open.send(()));
                match response {
                    Ok(response) if response.status.is_success() && is_stream(&response) => {
                        drop(endpoint);
                        let read = tokio::select! {
                            read = stream.read(response, &peer, None, &outbox) => read,
                            () = stop.cancelled() => return,
                        };
                        if read.is_ok_and(|count| count > 0) {
                            backoff.reset();
                        }
                    }
                    Ok(response) if response.status.as_u16() == 404 && endpoint.headers().session.is_some() => {
                        return peer.end(&RequestError::SessionExpired);
                    }
                    // Many servers have no such stream.
                    Ok(response) if response.status.is_client_error() => return,
                    Ok(_) | Err(_) => {}
                }
                tokio::select! {
                    () = tokio::time::sleep(resume_delay(&stream.events, backoff.delay())) => {}
                    () = stop.cancelled() => return,
                }
            }
        });
        let _ = timeout(STREAM_TIMEOUT, is_open).await;
    }
}

/// Waits for the next message to post. Returns `None` if the connection was closed.
async fn next_message(messages: &mut mpsc::Receiver<Message>, stop: &CancellationToken) -> Option<Message> {
    tokio::select! {
        message = messages.recv() => message,
        () = stop.cancelled() => None,
    }
}

/// Returns the delay before a stream is resumed. The server may set the delay within limits.
fn resume_delay(events: &Events, usual: Duration) -> Duration {
    events.retry().unwrap_or(usual).clamp(usual / 8, LONGEST_RESUME_DELAY)
}

/// Adds the standard headers of the modern era, which repeat parts of the message.
fn put_standard(headers: &mut HeaderMap, message: &Message) {
    let (method, params) = match message {
        Message::Request { method, params, .. } | Message::Notification { method, params } => (method, params.as_ref()),
        Message::Response { .. } => return,
    };
    if let Ok(value) = HeaderValue::from_str(method) {
        headers.insert(METHOD, value);
    }
    if let Some(Ok(value)) = name_of(method, params).map(|name| HeaderValue::from_str(&encode_header(name))) {
        headers.insert(NAME, value);
    }
}
