//! Calls at servers of the older era that hold while a person is asked. Such a server keeps its call open, so the call goes on in a task
//! of its own; whoever made it is free, and comes back with the answer.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::Digest;
use helve_mcp_wire::{CODES, RpcError};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::caller::BackChannel;
use crate::client::{How, Trouble};
use crate::unguessable::unguessable;
use crate::upstream::Upstream;

/// How long a server is kept waiting for a person.
const PATIENCE: Duration = Duration::from_mins(15);
/// How many calls of one server may hold at once.
const MAX_PARKED: usize = 64;

/// A question of a server, and where the answer goes.
pub(crate) struct Ask {
    /// The parameters of `elicitation/create`.
    pub(crate) params: Value,
    pub(crate) reply: oneshot::Sender<Value>,
}

/// Who is told of a call: whoever made it, or goes on with it.
type Told = Mutex<Option<Arc<dyn BackChannel>>>;

/// A call that goes on in a task of its own. Dropped, it is cancelled.
pub(crate) struct Held {
    work: JoinHandle<Result<Value, Trouble>>,
    asks: mpsc::Receiver<Ask>,
    told: Arc<Told>,
    cancel: CancellationToken,
    /// Cancels the call when nobody holds it any more.
    _guard: DropGuard,
}

/// How far such a call has come.
pub(crate) enum Step {
    /// It is over.
    Over(Result<Value, Trouble>),
    /// It holds until its question is answered.
    Asks(Held, Ask),
}

impl Held {
    /// Starts a call. What is told meanwhile goes to the channel.
    pub(crate) fn start(upstream: &Arc<Upstream>, method: &str, params: Map<String, Value>, how: How) -> Self {
        let (sender, asks) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let told = Arc::new(Told::new(how.channel.clone()));
        let channel: Arc<dyn BackChannel> = Arc::new(Asking { told: told.clone(), asks: sender });
        let how = How { cancel: cancel.clone(), channel: Some(channel), ..how };
        let (upstream, method) = (upstream.clone(), method.to_owned());
        let work = tokio::spawn(async move { upstream.ask(&method, &params, &how).await });
        Self { work, asks, told, _guard: cancel.clone().drop_guard(), cancel }
    }

    /// Whoever goes on with it is told of it from now on.
    pub(crate) fn tells(&self, channel: Option<Arc<dyn BackChannel>>) {
        *self.told.lock() = channel;
    }

    /// Waits for its end, or for its next question.
    pub(crate) async fn step(mut self, cancel: &CancellationToken) -> Step {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                self.cancel.cancel();
                // The server is told before the call is over.
                let _ = (&mut self.work).await;
                Step::Over(Err(Trouble::Cancelled))
            }
            done = &mut self.work => Step::Over(done.unwrap_or_else(|error| Err(Trouble::Protocol(error.to_string())))),
            Some(ask) = self.asks.recv() => Step::Asks(self, ask),
        }
    }
}

/// Calls that hold, each with the question that it holds for.
#[derive(Default)]
pub(crate) struct Parked(Mutex<HashMap<String, Kept>>);

struct Kept {
    held: Held,
    reply: oneshot::Sender<Value>,
    /// The request that may go on with it.
    belongs: Digest,
}

impl Parked {
    /// Puts a call aside, and gives the name by which it is found again. One that nobody comes back for is ended.
    pub(crate) fn put(self: &Arc<Self>, held: Held, reply: oneshot::Sender<Value>, belongs: Digest) -> Option<String> {
        let name = format!("helve-{}", unguessable()?);
        let mut parked = self.lock();
        if parked.len() >= MAX_PARKED {
            return None;
        }
        parked.insert(name.clone(), Kept { held, reply, belongs });
        let (all, forgotten): (Weak<Self>, String) = (Arc::downgrade(self), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            if let Some(all) = all.upgrade() {
                all.lock().remove(&forgotten);
            }
        });
        Some(name)
    }

    /// Takes a call back, for the request that it belongs to.
    pub(crate) fn take(&self, name: &str, belongs: Digest) -> Option<(Held, oneshot::Sender<Value>)> {
        let mut parked = self.lock();
        parked.get(name).filter(|kept| kept.belongs == belongs)?;
        parked.remove(name).map(|kept| (kept.held, kept.reply))
    }

    /// Ends all of them.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.0.lock()
    }
}

/// Tells what is to be told, and puts questions where they are answered from.
struct Asking {
    told: Arc<Told>,
    asks: mpsc::Sender<Ask>,
}

impl BackChannel for Asking {
    fn notify(&self, method: &str, params: Value) {
        let told = self.told.lock().clone();
        if let Some(told) = told {
            told.notify(method, params);
        }
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        let is_form = method == "elicitation/create";
        Box::pin(async move {
            if !is_form {
                return Err(RpcError { code: CODES.method, message: "this is not offered here".to_owned(), data: None });
            }
            let (reply, answer) = oneshot::channel();
            // Nobody is there to be asked any more, which is not the same as a no.
            let gone = || json!({"action": "cancel"});
            if self.asks.send(Ask { params, reply }).await.is_err() {
                return Ok(gone());
            }
            Ok(answer.await.unwrap_or_else(|_| gone()))
        })
    }
}
