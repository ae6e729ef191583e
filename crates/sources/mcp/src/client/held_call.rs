//! Calls at legacy servers that wait for a person. Such a server keeps its request open, so the call continues in a task of its own; the
//! caller is free, and comes back with the response.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::Digest;
use helve_mcp_wire::RpcError;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::RequestOptions;
use super::elicitation::not_offered;
use super::error::RequestError;
use super::upstream::Upstream;
use crate::downstream::BackChannel;
use crate::random::random_id;

/// How long a server waits for a person.
const PARK_TIMEOUT: Duration = Duration::from_mins(15);
/// How many calls of one server may be parked at once.
const MAX_PARKED: usize = 64;

/// An elicitation of a server, and where the response goes.
pub(crate) struct InputAsk {
    /// The parameters of `elicitation/create`.
    pub(crate) params: Value,
    pub(crate) response: oneshot::Sender<Value>,
}

/// The channel to the caller that makes the call, or continues it.
type CurrentChannel = Mutex<Option<Arc<dyn BackChannel>>>;

/// A call that runs in a task of its own. Dropping it cancels the call.
pub(crate) struct HeldCall {
    work: JoinHandle<Result<Value, RequestError>>,
    asks: mpsc::Receiver<InputAsk>,
    channel: Arc<CurrentChannel>,
    cancel: CancellationToken,
    _guard: DropGuard,
}

/// How far such a call has come.
pub(crate) enum CallProgress {
    /// It has ended.
    Over(Result<Value, RequestError>),
    /// It waits for the response to an elicitation.
    NeedsInput(HeldCall, InputAsk),
}

impl HeldCall {
    /// Starts a call.
    pub(crate) fn start(upstream: &Arc<Upstream>, method: &str, params: Map<String, Value>, options: RequestOptions) -> Self {
        let (sender, asks) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let current = Arc::new(CurrentChannel::new(options.channel.clone()));
        let channel: Arc<dyn BackChannel> = Arc::new(HeldCallChannel { current: current.clone(), asks: sender });
        let options = RequestOptions { cancel: cancel.clone(), channel: Some(channel), ..options };
        let (upstream, method) = (upstream.clone(), method.to_owned());
        let work = tokio::spawn(async move { upstream.request(&method, &params, &options).await });
        Self { work, asks, channel: current, _guard: cancel.clone().drop_guard(), cancel }
    }

    /// Sets the channel that receives notifications from now on.
    pub(crate) fn set_channel(&self, channel: Option<Arc<dyn BackChannel>>) {
        *self.channel.lock() = channel;
    }

    /// Waits for its end, or for its next elicitation.
    pub(crate) async fn advance(mut self, cancel: &CancellationToken) -> CallProgress {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                self.cancel.cancel();
                // The server is told before the call is over.
                let _ = (&mut self.work).await;
                CallProgress::Over(Err(RequestError::Cancelled))
            }
            done = &mut self.work => CallProgress::Over(done.unwrap_or_else(|error| Err(RequestError::Protocol(error.to_string())))),
            Some(ask) = self.asks.recv() => CallProgress::NeedsInput(self, ask),
        }
    }
}

/// The parked calls of one server, by names that cannot be guessed.
#[derive(Default)]
pub(crate) struct ParkedCalls(Mutex<HashMap<String, ParkedCall>>);

struct ParkedCall {
    call: HeldCall,
    response: oneshot::Sender<Value>,
    /// The request that may continue it.
    request: Digest,
}

impl ParkedCalls {
    /// Parks a call. Returns its name, or `None` if there are too many. The call ends if it is not continued in time.
    pub(crate) fn put(self: &Arc<Self>, call: HeldCall, response: oneshot::Sender<Value>, request: Digest) -> Option<String> {
        let name = format!("helve-{}", random_id()?);
        let mut parked = self.0.lock();
        if parked.len() >= MAX_PARKED {
            return None;
        }
        parked.insert(name.clone(), ParkedCall { call, response, request });
        let (all, expired): (Weak<Self>, String) = (Arc::downgrade(self), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(PARK_TIMEOUT).await;
            if let Some(all) = all.upgrade() {
                all.0.lock().remove(&expired);
            }
        });
        Some(name)
    }

    /// Takes a call back, for the request that it belongs to.
    pub(crate) fn take(&self, name: &str, request: Digest) -> Option<(HeldCall, oneshot::Sender<Value>)> {
        let mut parked = self.0.lock();
        parked.get(name).filter(|parked| parked.request == request)?;
        parked.remove(name).map(|parked| (parked.call, parked.response))
    }

    /// Ends all of them.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Forwards notifications, and queues elicitations for the holder of the call.
struct HeldCallChannel {
    current: Arc<CurrentChannel>,
    asks: mpsc::Sender<InputAsk>,
}

impl BackChannel for HeldCallChannel {
    fn notify(&self, method: &str, params: Value) {
        let current = self.current.lock().clone();
        if let Some(channel) = current {
            channel.notify(method, params);
        }
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        if method != "elicitation/create" {
            return not_offered();
        }
        Box::pin(async move {
            let (sender, response) = oneshot::channel();
            // If the caller is gone, that is not the same as a no.
            let cancelled = || json!({"action": "cancel"});
            if self.asks.send(InputAsk { params, response: sender }).await.is_err() {
                return Ok(cancelled());
            }
            Ok(response.await.unwrap_or_else(|_| cancelled()))
        })
    }
}
