//! A connection to a server in one era, and the requests on this connection.

use std::sync::Arc;
use std::time::Duration;

use helve_core::Digest;
use helve_mcp_wire::{Change, Era, META, Message, Meta, RequestId, ResultType};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::{RequestError, excerpt};
use super::handshake::{ClientIdentity, ServerFacts};
use super::http::{HttpEndpoint, Site, SseEndpoint};
use super::launch::Launch;
use super::peer::{Outbox, Peer, PendingRequest};
use super::stdio::Pipe;
use crate::downstream::BackChannel;

/// The address of a server.
#[derive(Clone)]
pub(crate) enum ServerAddress {
    /// A program on this machine.
    Command(Arc<Launch>),
    /// A URL.
    Url(Arc<Site>),
}

/// Options of a single request.
#[derive(Clone, Default)]
pub(crate) struct RequestOptions {
    pub(crate) timeout: Option<Duration>,
    /// The token that cancels the request.
    pub(crate) cancel: CancellationToken,
    /// The channel that receives the server's requests and notifications that belong to this request.
    pub(crate) channel: Option<Arc<dyn BackChannel>>,
    /// Whether the server should send progress notifications.
    pub(crate) progress: bool,
    /// The client on whose behalf the request is sent, if it is not the client that connected.
    pub(crate) on_behalf_of: Option<ClientIdentity>,
    /// The lowest level of log messages that the server should send.
    pub(crate) log_level: Option<Arc<str>>,
    /// The name of the called tool and the digest of its approved definition. If the definition is no longer approved, nothing is sent.
    pub(crate) approved: Option<(Arc<str>, Digest)>,
    /// HTTP headers that repeat arguments, for servers over HTTP.
    pub(crate) headers: Vec<(String, String)>,
}

pub(super) enum Transport {
    Pipe(Pipe),
    Http(Arc<HttpEndpoint>),
    Sse(Arc<SseEndpoint>),
}

impl Transport {
    /// Sends a message without waiting for a response.
    pub(super) async fn send(&self, message: &Message) -> Result<(), RequestError> {
        match self {
            Self::Pipe(pipe) => pipe.send(message).await,
            Self::Sse(endpoint) => Box::pin(endpoint.send(message)).await,
            Self::Http(endpoint) => Box::pin(endpoint.send(message)).await,
        }
    }

    /// Sends a request and waits for its response.
    pub(super) async fn request(
        &self,
        request: &Message,
        pending: &mut PendingRequest<'_>,
        headers: &[(String, String)],
        timeout: Option<Duration>,
    ) -> Result<Value, RequestError> {
        if let Self::Http(endpoint) = self {
            return Box::pin(endpoint.request(request, pending, headers, timeout)).await;
        }
        self.send(request).await?;
        pending.response().await
    }

    fn outbox(&self) -> Arc<dyn Outbox> {
        match self {
            Self::Pipe(pipe) => pipe.outbox(),
            Self::Sse(endpoint) => endpoint.outbox(),
            Self::Http(endpoint) => endpoint.outbox(),
        }
    }
}

/// A connection after its handshake. Dropping the value closes the connection.
pub(crate) struct Connection {
    pub(crate) era: Era,
    pub(crate) version: String,
    pub(crate) facts: ServerFacts,
    pub(super) client_identity: ClientIdentity,
    pub(super) peer: Arc<Peer>,
    pub(super) transport: Transport,
}

impl Connection {
    /// Sends a request and waits for its result.
    pub(crate) async fn request(&self, method: &str, params: &Map<String, Value>, options: &RequestOptions) -> Result<Value, RequestError> {
        if let Some(ended) = self.peer.ended() {
            return Err(RequestError::Unreachable(ended.to_string()));
        }
        let mut params = params.clone();
        let mut pending = self.peer.open_request(options.channel.clone());
        self.sign(&mut params, pending.id, options);
        let request = Message::Request {
            id: RequestId::Number(pending.id),
            method: method.to_owned(),
            params: (!params.is_empty()).then_some(Value::Object(params)),
        };
        let exchange = self.transport.request(&request, &mut pending, &options.headers, options.timeout);
        let result = tokio::select! {
            biased;
            () = options.cancel.cancelled() => Err(RequestError::Cancelled),
            result = within(options.timeout, exchange) => result,
        };
        if matches!(result, Err(RequestError::Cancelled | RequestError::TimedOut(_))) && pending.is_open() {
            self.cancel(pending.id);
        }
        match result.as_ref().map(ResultType::of) {
            Ok(ResultType::Task | ResultType::Unknown(_)) if self.era == Era::Modern => Err(unknown_type(&result?)),
            _ => result,
        }
    }

    /// Subscribes to the changes that the server announces.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.peer.changes()
    }

    /// Sets the client that owns this connection and receives the messages that belong to no request.
    pub(crate) fn set_owner(&self, client: Arc<dyn BackChannel>) {
        self.peer.set_owner(client);
    }

    /// Returns why the connection ended, or `None` if it is open.
    pub(crate) fn ended(&self) -> Option<RequestError> {
        self.peer.ended()
    }

    /// Waits until the connection ends. Returns why it ended.
    pub(crate) async fn wait_for_end(&self) -> RequestError {
        self.peer.wait_for_end().await
    }

    /// Ends the connection for the reason `why`, and fails its open requests.
    pub(crate) fn end(&self, why: &RequestError) {
        self.peer.end(why);
    }

    /// Returns whether the server declares a capability.
    pub(crate) fn can(&self, capability: &str) -> bool {
        self.facts.capabilities.get(capability).is_some_and(|value| !value.is_null())
    }

    /// Returns whether the connection uses the Streamable HTTP transport.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.transport, Transport::Http(_))
    }

    /// Adds the `_meta` that every request of the era must have, and the progress token.
    fn sign(&self, params: &mut Map<String, Value>, id: i64, options: &RequestOptions) {
        if self.era == Era::Legacy && !options.progress {
            return;
        }
        Meta::change(params, |meta| {
            if options.progress {
                meta.insert(META.progress.to_owned(), id.into());
            }
            if self.era == Era::Modern {
                options.on_behalf_of.as_ref().unwrap_or(&self.client_identity).sign(meta, &self.version);
                if let Some(level) = &options.log_level {
                    meta.insert(META.log_level.to_owned(), json!(level));
                }
            }
        });
    }

    /// Notifies the server that a request was cancelled. In the modern era over HTTP, closing the stream cancels the request instead.
    fn cancel(&self, id: i64) {
        if self.era == Era::Modern && self.is_http() {
            return;
        }
        let params = json!({"requestId": id, "reason": "the response is no longer needed"});
        self.transport.outbox().put(Message::Notification { method: "notifications/cancelled".to_owned(), params: Some(params) });
    }
}

fn unknown_type(result: &Value) -> RequestError {
    let name = match ResultType::of(result) {
        ResultType::Unknown(name) => excerpt(name),
        _ => "task".to_owned(),
    };
    RequestError::Protocol(format!("the server returned a result of the unknown type `{name}`"))
}

/// Runs `work` with a timeout, if there is one.
pub(super) async fn within<T>(time: Option<Duration>, work: impl Future<Output = Result<T, RequestError>>) -> Result<T, RequestError> {
    match time {
        Some(time) => timeout(time, work).await.unwrap_or(Err(RequestError::TimedOut(time))),
        None => work.await,
    }
}
