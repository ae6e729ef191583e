//! Requests of the server to a legacy client, and their pending responses.

use std::collections::HashMap;
use std::time::Duration;

use helve_mcp_wire::{CODES, Message, RequestId, RpcError};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::response::OutgoingMessage;

/// Maximum number of open requests to one client.
const MAX_OPEN: usize = 64;
/// Timeout for the response. It is long, because a person may have to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(10);

type ClientResponse = Result<Value, RpcError>;

/// The open requests to one client.
#[derive(Debug, Default)]
pub(super) struct ClientRequests(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last: i64,
    open: HashMap<i64, oneshot::Sender<ClientResponse>>,
}

impl ClientRequests {
    /// Sends a request, and waits for the response until `over` is cancelled, because the call that the request belongs to has ended.
    pub async fn send(&self, out: &mpsc::Sender<OutgoingMessage>, method: &str, params: Value, over: &CancellationToken) -> ClientResponse {
        let (guard, response) = self.open(out)?;
        let id = RequestId::Number(guard.id);
        let request = Message::Request { id, method: method.to_owned(), params: Some(params) };
        let exchange = async {
            let sent = out.send(OutgoingMessage::Notification { text: request.write(), number: None }).await;
            sent.map_err(|_| RpcError::new(CODES.internal, "The client no longer reads its stream"))?;
            response.await.unwrap_or_else(|_| Err(RpcError::new(CODES.internal, "The request was dropped")))
        };
        tokio::select! {
            biased;
             response = exchange => response,
            () = over.cancelled() => Err(RpcError::new(CODES.internal, "The call ended before the client responded")),
            () = time::sleep(RESPONSE_TIMEOUT) => Err(RpcError::new(CODES.internal, "The client did not respond in time")),
        }
    }

    /// Delivers a response to the waiting request. Ignores a response without an open request.
    pub fn respond(&self, id: &RequestId, response: ClientResponse) {
        let RequestId::Number(id) = id else { return };
        if let Some(waiting) = self.table().open.remove(id) {
            let _ = waiting.send(response);
        }
    }

    fn open<'a>(
        &'a self,
        out: &'a mpsc::Sender<OutgoingMessage>,
    ) -> Result<(RequestGuard<'a>, oneshot::Receiver<ClientResponse>), RpcError> {
        let mut table = self.table();
        if table.open.len() >= MAX_OPEN {
            return Err(RpcError::new(CODES.internal, "The client has too many open requests"));
        }
        table.last += 1;
        let id = table.last;
        let (sender, receiver) = oneshot::channel();
        table.open.insert(id, sender);
        Ok((RequestGuard { requests: self, out, id }, receiver))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

/// An open request. Dropping it without a response notifies the client that the request is cancelled.
struct RequestGuard<'a> {
    requests: &'a ClientRequests,
    out: &'a mpsc::Sender<OutgoingMessage>,
    id: i64,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        let open = self.requests.table().open.remove(&self.id);
        if open.is_some() {
            let params = json!({"requestId": self.id, "reason": "the response is no longer needed"});
            let _ = self.out.try_send(OutgoingMessage::notification("notifications/cancelled", params));
        }
    }
}
