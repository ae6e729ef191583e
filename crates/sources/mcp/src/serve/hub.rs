//! What all ways into the server share: the backend, the limits, and how one request is worked on.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use helve_mcp_wire::{CODES, RequestId, RpcError};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::ladder::Mirrored;
use super::open::Begun;
use super::options::Options;
use super::places::{Full, Place, Places};
use super::sessions::Sessions;
use super::stream::Out;
use super::{BUSY, Backend};

/// What all ways into the server share.
pub(super) struct Hub {
    pub backend: Arc<dyn Backend>,
    pub options: Options,
    pub sessions: Arc<Sessions>,
    pub mirrored: Mirrored,
    /// Where requests are worked on.
    pub requests: Places,
    /// Where clients listen.
    pub listeners: Places,
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
            requests: Places::new(options.max_requests, options.calls_at_once),
            listeners: Places::new(options.max_listeners, options.max_listeners),
            stopping: CancellationToken::new(),
            abort: CancellationToken::new(),
            options,
        }
    }

    /// Ends everything: first what only waits, then, where it does not end by itself, what runs.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.sessions.hush();
        let idle = async {
            // Whoever has all places knows that nobody else has one.
            self.requests.close().await;
            self.listeners.close().await;
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
    pub place: Place,
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
        drop((self.place, self.begun));
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

/// An answer that waits for its turn among the calls of its client. One that nobody waits for any more is not begun.
pub(super) async fn in_turn(
    turn: impl Future<Output = Option<OwnedSemaphorePermit>>,
    cancel: CancellationToken,
    answer: impl Future<Output = Result<Value, RpcError>>,
) -> Result<Value, RpcError> {
    let _turn = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(error(BUSY, "The request was cancelled")),
        turn = turn => turn,
    };
    answer.await
}

/// What a client is told for whom there is no place.
pub(super) fn no_place(full: Full) -> RpcError {
    match full {
        Full::All => error(BUSY, "The server works on too many requests already; try again later"),
        Full::Share => error(BUSY, "The server works on too many requests of this client already; try again later"),
    }
}
