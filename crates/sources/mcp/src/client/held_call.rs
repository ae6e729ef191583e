//! Calls to legacy servers that wait for input from a person. A legacy server keeps the request open while it waits, so the call continues
//! in a separate task. The caller returns, and resumes the call when the person has responded.

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

/// Maximum time that a call stays parked.
const PARK_TIMEOUT: Duration = Duration::from_mins(15);
/// Maximum number of calls to one server that are parked at once.
const MAX_PARKED: usize = 64;

/// An elicitation of a server, and the channel for the response to it.
pub(crate) struct InputAsk {
    /// The parameters of `elicitation/create`.
    pub(crate) params: Value,
    pub(crate) response: oneshot::Sender<Value>,
}

/// The channel to the caller that currently waits for the call.
type CurrentChannel = Mutex<Option<Arc<dyn BackChannel>>>;

/// A call that runs in a separate task. Dropping the value cancels the call.
pub(crate) struct HeldCall {
    work: JoinHandle<Result<Value, RequestError>>,
    asks: mpsc::Receiver<InputAsk>,
    channel: Arc<CurrentChannel>,
    cancel: CancellationToken,
    _guard: DropGuard,
}

/// The state of a [`HeldCall`] after it was advanced.
pub(crate) enum CallProgress {
    /// The call has ended with this result.
    Over(Result<Value, RequestError>),
    /// The call waits for the response to an elicitation.
    NeedsInput(HeldCall, InputAsk),
}

impl HeldCall {
    /// Starts a call in a separate task.
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

    /// Sets the channel that receives the server's notifications from now on.
    pub(crate) fn set_channel(&self, channel: Option<Arc<dyn BackChannel>>) {
        *self.channel.lock() = channel;
    }

    /// Waits until the call ends, or until the server sends an elicitation.
    pub(crate) async fn advance(mut self, cancel: &CancellationToken) -> CallProgress {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                self.cancel.cancel();
                // Waits until the server has been notified.
                let _ = (&mut self.work).await;
                CallProgress::Over(Err(RequestError::Cancelled))
            }
            done = &mut self.work => CallProgress::Over(done.unwrap_or_else(|error| Err(RequestError::Protocol(error.to_string())))),
            Some(ask) = self.asks.recv() => CallProgress::NeedsInput(self, ask),
        }
    }
}

/// The parked calls to one server, by random names that cannot be guessed.
#[derive(Default)]
pub(crate) struct ParkedCalls(Mutex<HashMap<String, ParkedCall>>);

struct ParkedCall {
    call: HeldCall,
    response: oneshot::Sender<Value>,
    /// The digest of the only request that may resume the call.
    request: Digest,
}

impl ParkedCalls {
    /// Parks a call, which is cancelled if it is not resumed in time. Returns the name of the parked call, or `None` if too many calls are
    /// parked.
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

    /// Removes a parked call and returns it, or `None` if there is no call with this name and this request.
    pub(crate) fn take(&self, name: &str, request: Digest) -> Option<(HeldCall, oneshot::Sender<Value>)> {
        let mut parked = self.0.lock();
        parked.get(name).filter(|parked| parked.request == request)?;
        parked.remove(name).map(|parked| (parked.call, parked.response))
    }

    /// Cancels all parked calls.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Forwards notifications to the current caller, and passes elicitations to the holder of the call.
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
            // A caller that is gone has not declined, so the response is `cancel`.
            let cancelled = || json!({"action": "cancel"});
            if self.asks.send(InputAsk { params, response: sender }).await.is_err() {
                return Ok(cancelled());
            }
            Ok(response.await.unwrap_or_else(|_| cancelled()))
        })
    }
}
