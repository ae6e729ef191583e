//! What all ways into the server share: the backend, the limits, and how one request is worked on.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use helve_mcp_wire::{CODES, RequestId, RpcError};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::ladder::Mirrored;
use super::open::Begun;
use super::options::Options;
use super::sessions::Sessions;
use super::stream::Out;
use super::{BUSY, Backend};

/// What all ways into the server share.
pub(super) struct Hub {
    pub backend: Arc<dyn Backend>,
    pub options: Options,
    pub sessions: Arc<Sessions>,
    pub mirrored: Mirrored,
    requests: Arc<Semaphore>,
    listeners: Arc<Semaphore>,
    /// Fires when nothing new is to be begun.
    pub stopping: CancellationToken,
    /// Fires when what still runs is to end.
    pub abort: CancellationToken,
}

impl Hub {
    pub fn new(backend: Arc<dyn Backend>, options: Options) -> Self {
        Self {
            sessions: Sessions::new(backend.clone(), options.max_sessions, options.idle),
            backend,
            mirrored: Mirrored::default(),
            requests: Arc::new(Semaphore::new(permits(options.max_requests))),
            listeners: Arc::new(Semaphore::new(permits(options.max_listeners))),
            stopping: CancellationToken::new(),
            abort: CancellationToken::new(),
            options,
        }
    }

    /// Room for one more request.
    pub fn admit(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        self.requests.clone().try_acquire_owned().map_err(|_| error(BUSY, "The server works on too many requests already"))
    }

    /// Room for one more client that listens.
    pub fn admit_listener(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        self.listeners.clone().try_acquire_owned().map_err(|_| error(BUSY, "Too many clients listen already"))
    }

    /// Ends everything: first what only waits, then, where it does not end by itself, what runs.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.sessions.hush();
        let idle = async {
            // Whoever has all places knows that nobody else has one.
            let _ = self.requests.acquire_many(size(self.options.max_requests)).await;
            let _ = self.listeners.acquire_many(size(self.options.max_listeners)).await;
        };
        let _ = time::timeout(self.options.grace, idle).await;
        self.abort.cancel();
        self.sessions.end_all();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.abort.cancel();
        self.sessions.end_all();
    }
}

/// One request that is worked on.
pub(super) struct Work {
    pub id: RequestId,
    /// Where the answer goes.
    pub out: mpsc::Sender<Out>,
    /// Fires when nobody waits for the answer any more, and when it is out.
    pub cancel: CancellationToken,
    pub permit: OwnedSemaphorePermit,
    pub begun: Option<Begun>,
    /// For how long the answer waits for a reader.
    pub patience: Duration,
    /// How long the work may go on when nobody waits for it.
    pub grace: Duration,
}

impl Work {
    /// Works until there is an answer, and sends it. There is none for a request that was cancelled.
    pub async fn run(self, answer: impl Future<Output = Result<Value, RpcError>>) {
        let mut answer = pin!(settle(answer));
        let out = tokio::select! {
            // What was cancelled is not answered, also where there is an answer at once.
            biased;
            () = self.cancel.cancelled() => Out::Gone,
            result = &mut answer => Out::answer(self.id.clone(), result),
        };
        let gone = matches!(out, Out::Gone);
        let _ = time::timeout(self.patience, self.out.send(out)).await;
        self.cancel.cancel();
        if gone {
            let _ = time::timeout(self.grace, answer).await;
        }
        drop((self.permit, self.begun));
    }
}

/// The answer of a backend, also where it panics.
pub(super) async fn settle(answer: impl Future<Output = Result<Value, RpcError>>) -> Result<Value, RpcError> {
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("a request over MCP panicked");
        Err(error(CODES.internal, "The server failed; its log says more"))
    })
}

/// An error without data.
pub(super) fn error(code: i64, message: impl Into<String>) -> RpcError {
    RpcError { code, message: message.into(), data: None }
}

fn permits(wanted: usize) -> usize {
    wanted.min(Semaphore::MAX_PERMITS)
}

fn size(wanted: usize) -> u32 {
    u32::try_from(wanted).unwrap_or(u32::MAX)
}
