//! The server at the other end of a connection: tracks the open requests, and routes the server's messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use helve_mcp_wire::{CODES, Change, META, Message, RequestId, RpcError};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{broadcast, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::elicitation::ASKS;
use super::error::{RequestError, excerpt};
use crate::downstream::BackChannel;

/// Maximum number of open requests from a server. Further requests are rejected.
const MAX_SERVER_REQUESTS: usize = 16;
/// Maximum length in bytes of the id of a server's request, which is kept until the response is sent.
const MAX_ID: usize = 1 << 10;
/// The methods of the notifications that are forwarded to the caller.
const PASSED: [&str; 4] =
    ["notifications/message", "notifications/progress", "notifications/elicitation/complete", "notifications/subscriptions/acknowledged"];
/// Capacity of the channel of changes. A receiver that lags further behind misses changes.
const CHANGES: usize = 64;

/// A queue of messages to the server.
pub(crate) trait Outbox: Send + Sync + 'static {
    /// Adds a response or a notification to the queue without blocking. Drops the message if the queue is full.
    fn put(&self, message: Message);
}

/// The server at the other end of one connection.
pub(crate) struct Peer {
    next: AtomicI64,
    open: Mutex<HashMap<i64, OpenRequest>>,
    /// Requests from the server without a response so far, each with the token that cancels it.
    server_requests: Mutex<HashMap<RequestId, CancellationToken>>,
    changes: broadcast::Sender<Change>,
    ended: watch::Sender<Option<RequestError>>,
    /// The channel for messages that belong to no request. Set only on connections that a single client uses.
    owner: OnceLock<Arc<dyn BackChannel>>,
}

/// A request to the server without a response so far.
struct OpenRequest {
    response: oneshot::Sender<Result<Value, RequestError>>,
    channel: Option<Arc<dyn BackChannel>>,
}

/// A request to the server. Dropping the value closes the request; a later response is ignored.
pub(crate) struct PendingRequest<'a> {
    peer: &'a Peer,
    pub(crate) id: i64,
    response: oneshot::Receiver<Result<Value, RequestError>>,
}

impl PendingRequest<'_> {
    /// Waits for the response.
    pub(crate) async fn response(&mut self) -> Result<Value, RequestError> {
        match (&mut self.response).await {
            Ok(response) => response,
            Err(_) => Err(self.peer.why_ended()),
        }
    }

    /// Returns the response if it has arrived.
    pub(crate) fn poll_response(&mut self) -> Option<Result<Value, RequestError>> {
        self.response.try_recv().ok()
    }

    /// Returns whether a response is still expected.
    pub(crate) fn is_open(&self) -> bool {
        self.peer.open.lock().contains_key(&self.id)
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.peer.open.lock().remove(&self.id);
    }
}

impl Peer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            next: AtomicI64::new(1),
            open: Mutex::default(),
            server_requests: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES),
            ended: watch::Sender::new(None),
            owner: OnceLock::new(),
        })
    }

    /// Opens a request. `channel` receives the server's messages that belong to this request.
    pub(crate) fn open_request(&self, channel: Option<Arc<dyn BackChannel>>) -> PendingRequest<'_> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, response) = oneshot::channel();
        self.open.lock().insert(id, OpenRequest { response: sender, channel });
        PendingRequest { peer: self, id, response }
    }

    /// Sets the client that owns the connection and receives the messages that belong to no request.
    pub(crate) fn set_owner(&self, client: Arc<dyn BackChannel>) {
        // Keeps the first owner.
        let _ = self.owner.set(client);
    }

    /// Ends the connection for the reason `why`, and fails all open requests.
    pub(crate) fn end(&self, why: &RequestError) {
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(why.clone());
            }
            first
        });
        let open = std::mem::take(&mut *self.open.lock());
        for (_, open) in open {
            let _ = open.response.send(Err(why.clone()));
        }
    }

    /// Returns why the connection ended, or `None` if it is open.
    pub(crate) fn ended(&self) -> Option<RequestError> {
        self.ended.borrow().clone()
    }

    fn why_ended(&self) -> RequestError {
        self.ended().unwrap_or_else(|| RequestError::Disconnected("the connection was closed".to_owned()))
    }

    /// Waits until the connection ends. Returns why it ended.
    pub(crate) async fn wait_for_end(&self) -> RequestError {
        let mut ended = self.ended.subscribe();
        // Cannot fail: `self` owns the sender.
        let _ = ended.wait_for(Option::is_some).await;
        self.why_ended()
    }

    /// Subscribes to the changes that the server announces.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Fails the open request with this id.
    pub(crate) fn fail(&self, id: i64, why: RequestError) {
        if let Some(open) = self.open.lock().remove(&id) {
            let _ = open.response.send(Err(why));
        }
    }

    /// Handles a message from the server. `via` is the request on whose stream the message arrived, if each request has its own stream.
    pub(crate) fn deliver(self: &Arc<Self>, message: Message, via: Option<i64>, outbox: &Arc<dyn Outbox>) {
        match message {
            Message::Response { id, result } => self.respond(id.as_ref(), result, via),
            Message::Notification { method, params } => self.notify(&method, params.unwrap_or_default(), via),
            Message::Request { id, method, params } => self.serve(id, method, params.unwrap_or_else(|| json!({})), via, outbox),
        }
    }

    fn respond(&self, id: Option<&RequestId>, result: Result<Value, RpcError>, via: Option<i64>) {
        let id = match id {
            Some(RequestId::Number(id)) => Some(*id),
            // An error without an id belongs to the request on whose stream it arrived.
            None if result.is_err() => via,
            _ => None,
        };
        let Some(open) = id.and_then(|id| self.open.lock().remove(&id)) else {
            return tracing::debug!(?id, "a response without a request was dropped");
        };
        // The caller may be gone.
        let _ = open.response.send(result.map_err(RequestError::Rpc));
    }

    fn notify(&self, method: &str, params: Value, via: Option<i64>) {
        if let Some(change) = Change::read(method, &params) {
            // Fails only if there is no receiver.
            let _ = self.changes.send(change);
            return;
        }
        if method == "notifications/cancelled" {
            // The server cancels one of its own requests. Its id means nothing to the caller, so the notification is not forwarded.
            let id = params.get("requestId").and_then(|id| RequestId::deserialize(id).ok());
            if let Some(request) = id.and_then(|id| self.server_requests.lock().remove(&id)) {
                request.cancel();
            }
            return;
        }
        if !PASSED.contains(&method) {
            return tracing::debug!(method = excerpt(method), "an unknown notification was dropped");
        }
        let channel = match method {
            "notifications/progress" => params.get(META.progress).and_then(Value::as_i64).and_then(|id| self.channel_of(id)),
            _ => self.channel(via),
        };
        let Some(channel) = channel else {
            return tracing::debug!(method = excerpt(method), "a notification without a receiver was dropped");
        };
        channel.notify(method, params);
    }

    fn channel_of(&self, id: i64) -> Option<Arc<dyn BackChannel>> {
        self.open.lock().get(&id)?.channel.clone()
    }

    /// Returns the channel of the request `via`. Without `via`, returns the channel of the only open request with one. Falls back to the
    /// owner of the connection.
    fn channel(&self, via: Option<i64>) -> Option<Arc<dyn BackChannel>> {
        let channel = match via {
            Some(id) => self.channel_of(id),
            None => self.only_channel(),
        };
        channel.or_else(|| self.owner.get().cloned())
    }

    fn only_channel(&self) -> Option<Arc<dyn BackChannel>> {
        let open = self.open.lock();
        let mut channels = open.values().filter_map(|open| open.channel.as_ref());
        let only = channels.next()?;
        channels.next().is_none().then(|| only.clone())
    }

    fn serve(self: &Arc<Self>, id: RequestId, method: String, params: Value, via: Option<i64>, outbox: &Arc<dyn Outbox>) {
        let refuse = |code, message: &str| {
            outbox.put(Message::Response { id: Some(id.clone()), result: Err(RpcError::new(code, message)) });
        };
        if matches!(&id, RequestId::Text(text) if text.len() > MAX_ID) {
            return tracing::debug!("a request with a very long id was dropped");
        }
        if method == "ping" {
            return outbox.put(Message::Response { id: Some(id), result: Ok(json!({})) });
        }
        if !ASKS.contains(&method.as_str()) {
            return refuse(CODES.method, "method not found");
        }
        let Some(channel) = self.channel(via) else {
            return refuse(CODES.request, "no client is available for this request");
        };
        let cancel = CancellationToken::new();
        {
            let mut open = self.server_requests.lock();
            let wrong = match open.len() {
                _ if open.contains_key(&id) => Some("a request with this id is already open"),
                MAX_SERVER_REQUESTS.. => Some("too many open requests"),
                _ => None,
            };
            if let Some(wrong) = wrong {
                drop(open);
                return refuse(CODES.internal, wrong);
            }
            open.insert(id.clone(), cancel.clone());
        }
        let (peer, outbox) = (self.clone(), outbox.clone());
        tokio::spawn(async move {
            let result = tokio::select! {
                result = channel.ask(&method, params) => result,
                () = cancel.cancelled() => return,
                _ = peer.wait_for_end() => return,
            };
            peer.server_requests.lock().remove(&id);
            outbox.put(Message::Response { id: Some(id), result });
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{BoxFuture, pending};

    use super::*;

    /// Remembers the notifications that it gets.
    #[derive(Default)]
    struct RecordingChannel(Mutex<Vec<String>>);

    impl BackChannel for RecordingChannel {
        fn notify(&self, method: &str, _: Value) {
            self.0.lock().push(method.to_owned());
        }

        fn ask(&self, _: &str, _: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
            Box::pin(pending())
        }
    }

    impl Outbox for RecordingChannel {
        fn put(&self, _: Message) {}
    }

    #[test]
    fn what_is_known_reaches_whoever_asked_and_nothing_else() {
        let (peer, channel, outbox) =
            (Peer::new(), Arc::new(RecordingChannel::default()), Arc::new(RecordingChannel::default()) as Arc<dyn Outbox>);
        let pending = peer.open_request(Some(channel.clone()));
        let other = ["notifications/cancelled", "notifications/whatever", "notifications/tools/list_changed"];
        for method in PASSED.iter().chain(&other) {
            let params = Some(json!({META.progress: pending.id, "requestId": 1}));
            peer.deliver(Message::Notification { method: (*method).to_owned(), params }, Some(pending.id), &outbox);
        }
        // A subscription waits for the last of these.
        let expected = [
            "notifications/message",
            "notifications/progress",
            "notifications/elicitation/complete",
            "notifications/subscriptions/acknowledged",
        ];
        assert_eq!(*channel.0.lock(), expected);
    }
}
