//! The state that all transports of the server share: the backend and the limits. Also runs requests.

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

use super::modern_checks::HeaderParams;
use super::open_requests::OpenRequest;
use super::options::ServerOptions;
use super::response::OutgoingMessage;
use super::session_table::SessionTable;
use super::slots::{CapacityError, Slot, Slots};
use super::{BUSY, Backend};

/// The state that all transports of the server share.
pub(super) struct Hub {
    pub backend: Arc<dyn Backend>,
    pub options: ServerOptions,
    pub sessions: Arc<SessionTable>,
    pub header_params: HeaderParams,
    /// The slots for concurrent requests.
    pub requests: Slots,
    /// The slots for clients that listen for changes.
    pub listeners: Slots,
    /// The token that is cancelled when no new requests may start.
    pub stopping: CancellationToken,
    /// The token that is cancelled when running requests must end.
    pub abort: CancellationToken,
}

impl Hub {
    pub fn new(backend: Arc<dyn Backend>, options: ServerOptions) -> Self {
        Self {
            sessions: SessionTable::new(backend.clone(), options.max_sessions, options.idle),
            backend,
            header_params: HeaderParams::default(),
            requests: Slots::new(options.max_requests, options.calls_at_once),
            listeners: Slots::new(options.max_listeners, options.max_listeners),
            stopping: CancellationToken::new(),
            abort: CancellationToken::new(),
            options,
        }
    }

    /// Stops the server: closes the streams, waits for running requests during the grace period, then cancels the rest.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.sessions.close_streams();
        let idle = async {
            // If all slots are free, no request is running.
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

/// A running request.
pub(super) struct RunningRequest {
    pub id: RequestId,
    /// The queue of messages to the client.
    pub out: mpsc::Sender<OutgoingMessage>,
    /// The token that is cancelled when the client no longer waits, or the response was sent.
    pub cancel: CancellationToken,
    pub slot: Slot,
    pub open: Option<OpenRequest>,
    /// Maximum time that the response waits for a client that reads slowly.
    pub patience: Duration,
    /// Maximum time that the request may continue to run after it was cancelled.
    pub grace: Duration,
}

impl RunningRequest {
    /// Waits for the response, and sends it. Sends no response if the request was cancelled.
    pub async fn run(self, response: impl Future<Output = Result<Value, RpcError>>) {
        let mut response = pin!(settle(response));
        let out = tokio::select! {
            // A cancelled request gets no response, even if the response is ready.
            biased;
            () = self.cancel.cancelled() => OutgoingMessage::Closed,
            result = &mut response => OutgoingMessage::response(self.id.clone(), result),
        };
        let gone = matches!(out, OutgoingMessage::Closed);
        let _ = time::timeout(self.patience, self.out.send(out)).await;
        self.cancel.cancel();
        if gone {
            let _ = time::timeout(self.grace, response).await;
        }
        drop((self.slot, self.open));
    }
}

/// Awaits a response of the backend, and converts a panic to an error.
pub(super) async fn settle(response: impl Future<Output = Result<Value, RpcError>>) -> Result<Value, RpcError> {
    AssertUnwindSafe(response).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("an MCP request panicked");
        Err(RpcError::new(CODES.internal, "Internal server error; see the server's log"))
    })
}

/// Waits for the permit of a call, then runs the call. A call that is cancelled before that does not start.
pub(super) async fn in_turn(
    turn: impl Future<Output = Option<OwnedSemaphorePermit>>,
    cancel: CancellationToken,
    response: impl Future<Output = Result<Value, RpcError>>,
) -> Result<Value, RpcError> {
    let _turn = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(RpcError::new(BUSY, "The request was cancelled")),
        turn = turn => turn,
    };
    response.await
}

/// Returns the error for a request that gets no slot.
pub(super) fn no_slot(full: CapacityError) -> RpcError {
    match full {
        CapacityError::All => RpcError::new(BUSY, "The server has too many open requests; try again later"),
        CapacityError::Share => RpcError::new(BUSY, "This client has too many open requests; try again later"),
    }
}
