//! The other side of a connection: which requests are open, and what becomes of what it says.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use helve_mcp_wire::{CODES, META, Message, RequestId, RpcError};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{broadcast, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::trouble::{Trouble, excerpt};
use crate::asking::ASKS;
use crate::caller::BackChannel;
use crate::serve::Change;

/// How many questions of a server are open at once; more are refused.
const MAX_ASKS: usize = 16;
/// The longest name of a question; it is kept until the answer to it is written.
const MAX_ID: usize = 1 << 10;
/// What a server may tell whoever asked it, besides changes.
const PASSED: [&str; 4] =
    ["notifications/message", "notifications/progress", "notifications/elicitation/complete", "notifications/subscriptions/acknowledged"];
/// The longest address of a resource.
const MAX_ADDRESS: usize = 8 << 10;
/// How many changes wait for someone who looks after them.
const CHANGES: usize = 64;

/// Sends something to the other side without waiting for it.
pub(crate) trait Outbox: Send + Sync + 'static {
    /// Sends an answer or a notification.
    fn put(&self, message: Message);
}

/// What is known of the other side while the connection stands.
pub(crate) struct Peer {
    next: AtomicI64,
    open: Mutex<HashMap<i64, Open>>,
    /// Questions of the other side that are not answered yet, and what takes them back.
    asks: Mutex<HashMap<RequestId, CancellationToken>>,
    changes: broadcast::Sender<Change>,
    ended: watch::Sender<Option<Trouble>>,
    /// Where that goes which belongs to no request, or nobody knows to which, for a connection that is one client's alone.
    between: OnceLock<Arc<dyn BackChannel>>,
}

/// A request that has no answer yet.
struct Open {
    answer: oneshot::Sender<Result<Value, Trouble>>,
    channel: Option<Arc<dyn BackChannel>>,
}

/// A request that is open as long as this lives.
pub(crate) struct Waiting<'a> {
    peer: &'a Peer,
    pub(crate) id: i64,
    answer: oneshot::Receiver<Result<Value, Trouble>>,
}

impl Waiting<'_> {
    /// Waits for the answer.
    pub(crate) async fn answer(&mut self) -> Result<Value, Trouble> {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.peer.why_ended()),
        }
    }

    /// The answer, if it is there.
    pub(crate) fn poll_answer(&mut self) -> Option<Result<Value, Trouble>> {
        self.answer.try_recv().ok()
    }

    /// Whether the other side is still expected to answer.
    pub(crate) fn is_open(&self) -> bool {
        self.peer.open().contains_key(&self.id)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.peer.open().remove(&self.id);
    }
}

impl Peer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            next: AtomicI64::new(1),
            open: Mutex::default(),
            asks: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES),
            ended: watch::Sender::new(None),
            between: OnceLock::new(),
        })
    }

    fn asks(&self) -> parking_lot::MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.asks.lock()
    }

    fn open(&self) -> parking_lot::MutexGuard<'_, HashMap<i64, Open>> {
        self.open.lock()
    }

    /// Begins a request. What the other side wants to say or know meanwhile goes to the channel.
    pub(crate) fn begin(&self, channel: Option<Arc<dyn BackChannel>>) -> Waiting<'_> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.open().insert(id, Open { answer: sender, channel });
        Waiting { peer: self, id, answer }
    }

    /// Whose connection it is: what belongs to no request goes there.
    pub(crate) fn belongs_to(&self, client: Arc<dyn BackChannel>) {
        // The first one stays.
        let _ = self.between.set(client);
    }

    /// The connection is over: whoever waits is told why.
    pub(crate) fn end(&self, why: &Trouble) {
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(why.clone());
            }
            first
        });
        let open = std::mem::take(&mut *self.open());
        for (_, open) in open {
            let _ = open.answer.send(Err(why.clone()));
        }
    }

    /// Why the connection is over, if it is.
    pub(crate) fn ended(&self) -> Option<Trouble> {
        self.ended.borrow().clone()
    }

    fn why_ended(&self) -> Trouble {
        self.ended().unwrap_or_else(|| Trouble::Gone("the connection was closed".to_owned()))
    }

    /// Waits until the connection is over.
    pub(crate) async fn wait_for_end(&self) -> Trouble {
        let mut ended = self.ended.subscribe();
        // The sender lives as long as this does.
        let _ = ended.wait_for(Option::is_some).await;
        self.why_ended()
    }

    /// What the other side says has changed, from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// One request fails alone.
    pub(crate) fn fail(&self, id: i64, why: Trouble) {
        if let Some(open) = self.open().remove(&id) {
            let _ = open.answer.send(Err(why));
        }
    }

    /// Takes what the other side says. `via` is the request on whose stream it came, where each has its own.
    pub(crate) fn deliver(self: &Arc<Self>, message: Message, via: Option<i64>, outbox: &Arc<dyn Outbox>) {
        match message {
            Message::Response { id, result } => self.answered(id.as_ref(), result, via),
            Message::Notification { method, params } => self.notified(&method, params.unwrap_or_default(), via),
            Message::Request { id, method, params } => self.asked(id, method, params.unwrap_or_else(|| json!({})), via, outbox),
        }
    }

    fn answered(&self, id: Option<&RequestId>, result: Result<Value, RpcError>, via: Option<i64>) {
        let id = match id {
            Some(RequestId::Number(id)) => Some(*id),
            // An error without an id can only be about the request on whose stream it came.
            None if result.is_err() => via,
            _ => None,
        };
        let Some(open) = id.and_then(|id| self.open().remove(&id)) else {
            return tracing::debug!(?id, "an answer that nobody waits for was dropped");
        };
        // Whoever asked may have gone meanwhile.
        let _ = open.answer.send(result.map_err(Trouble::Refused));
    }

    fn notified(&self, method: &str, params: Value, via: Option<i64>) {
        let change = match method {
            "notifications/tools/list_changed" => Some(Change::Tools),
            "notifications/prompts/list_changed" => Some(Change::Prompts),
            "notifications/resources/list_changed" => Some(Change::Resources),
            "notifications/resources/updated" => match params.get("uri").and_then(Value::as_str) {
                Some(address) if address.len() <= MAX_ADDRESS => Some(Change::Resource(address.to_owned())),
                _ => return,
            },
            _ => None,
        };
        if let Some(change) = change {
            // Where nobody looks after changes, nobody needs to know.
            let _ = self.changes.send(change);
            return;
        }
        if method == "notifications/cancelled" {
            // It takes back what it asked. How it names that, nobody else knows.
            let id = params.get("requestId").and_then(|id| RequestId::deserialize(id).ok());
            if let Some(asked) = id.and_then(|id| self.asks().remove(&id)) {
                asked.cancel();
            }
            return;
        }
        if !PASSED.contains(&method) {
            return tracing::debug!(method = excerpt(method), "a notification that is not known was dropped");
        }
        let channel = match method {
            "notifications/progress" => params.get(META.progress).and_then(Value::as_i64).and_then(|id| self.channel_of(id)),
            _ => self.channel(via),
        };
        let Some(channel) = channel else {
            return tracing::debug!(method = excerpt(method), "a notification that concerns nobody was dropped");
        };
        channel.notify(method, params);
    }

    fn channel_of(&self, id: i64) -> Option<Arc<dyn BackChannel>> {
        self.open().get(&id)?.channel.clone()
    }

    /// The way to whoever asked; where that is not clear, to the only one who did, or whose connection it is.
    fn channel(&self, via: Option<i64>) -> Option<Arc<dyn BackChannel>> {
        let asked = match via {
            Some(id) => self.channel_of(id),
            None => self.only_channel(),
        };
        asked.or_else(|| self.between.get().cloned())
    }

    fn only_channel(&self) -> Option<Arc<dyn BackChannel>> {
        let open = self.open();
        let mut channels = open.values().filter_map(|open| open.channel.as_ref());
        let only = channels.next()?;
        channels.next().is_none().then(|| only.clone())
    }

    fn asked(self: &Arc<Self>, id: RequestId, method: String, params: Value, via: Option<i64>, outbox: &Arc<dyn Outbox>) {
        let refuse = |code, message: &str| {
            let error = RpcError { code, message: message.to_owned(), data: None };
            outbox.put(Message::Response { id: Some(id.clone()), result: Err(error) });
        };
        if matches!(&id, RequestId::Text(text) if text.len() > MAX_ID) {
            return tracing::debug!("a question with a very long name was dropped");
        }
        if method == "ping" {
            return outbox.put(Message::Response { id: Some(id), result: Ok(json!({})) });
        }
        if !ASKS.contains(&method.as_str()) {
            return refuse(CODES.method, "there is no such method here");
        }
        let Some(channel) = self.channel(via) else {
            return refuse(CODES.request, "nobody is there who could be asked");
        };
        let taken_back = CancellationToken::new();
        {
            let mut asks = self.asks();
            let wrong = match asks.len() {
                _ if asks.contains_key(&id) => Some("a question of this name is open already"),
                MAX_ASKS.. => Some("too many questions at once"),
                _ => None,
            };
            if let Some(wrong) = wrong {
                drop(asks);
                return refuse(CODES.internal, wrong);
            }
            asks.insert(id.clone(), taken_back.clone());
        }
        let (peer, outbox) = (self.clone(), outbox.clone());
        tokio::spawn(async move {
            let result = tokio::select! {
                result = channel.ask(&method, params) => result,
                () = taken_back.cancelled() => return,
                _ = peer.wait_for_end() => return,
            };
            peer.asks().remove(&id);
            outbox.put(Message::Response { id: Some(id), result });
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{BoxFuture, pending};

    use super::*;

    /// Remembers what it is told.
    #[derive(Default)]
    struct Ear(Mutex<Vec<String>>);

    impl BackChannel for Ear {
        fn notify(&self, method: &str, _: Value) {
            self.0.lock().push(method.to_owned());
        }

        fn ask(&self, _: &str, _: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
            Box::pin(pending())
        }
    }

    impl Outbox for Ear {
        fn put(&self, _: Message) {}
    }

    #[test]
    fn what_is_known_reaches_whoever_asked_and_nothing_else() {
        let (peer, ear, outbox) = (Peer::new(), Arc::new(Ear::default()), Arc::new(Ear::default()) as Arc<dyn Outbox>);
        let waiting = peer.begin(Some(ear.clone()));
        let other = ["notifications/cancelled", "notifications/whatever", "notifications/tools/list_changed"];
        for method in PASSED.iter().chain(&other) {
            let params = Some(json!({META.progress: waiting.id, "requestId": 1}));
            peer.deliver(Message::Notification { method: (*method).to_owned(), params }, Some(waiting.id), &outbox);
        }
        // Whoever listens waits for the last of these.
        let expected = [
            "notifications/message",
            "notifications/progress",
            "notifications/elicitation/complete",
            "notifications/subscriptions/acknowledged",
        ];
        assert_eq!(*ear.0.lock(), expected);
    }
}
