//! Tracks the running requests of a client by id, so that the client can cancel them.

use std::collections::HashMap;
use std::sync::Arc;

use helve_mcp_wire::RequestId;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The running requests of one client.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenRequests(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    /// The running requests by id. A client that uses an id twice can cancel only the later request.
    requests: HashMap<RequestId, (u64, CancellationToken)>,
}

impl OpenRequests {
    /// Adds a request, until the returned guard is dropped.
    pub fn begin(&self, id: RequestId, cancel: CancellationToken) -> OpenRequest {
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        table.requests.insert(id.clone(), (number, cancel));
        OpenRequest { open: self.clone(), id, number }
    }

    /// Cancels the request that the parameters of `notifications/cancelled` name.
    pub fn cancel(&self, params: Option<&Value>) {
        let id = params.and_then(|params| params.get("requestId")).and_then(|id| serde_json::from_value(id.clone()).ok());
        let found = id.and_then(|id: RequestId| self.table().requests.get(&id).map(|(_, cancel)| cancel.clone()));
        if let Some(cancel) = found {
            cancel.cancel();
        }
    }

    /// Returns whether no request is running.
    pub fn is_empty(&self) -> bool {
        self.table().requests.is_empty()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

/// A running request. Dropping it removes it from the table.
#[derive(Debug)]
pub(super) struct OpenRequest {
    open: OpenRequests,
    id: RequestId,
    number: u64,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut table = self.open.table();
        if table.requests.get(&self.id).is_some_and(|(number, _)| *number == self.number) {
            table.requests.remove(&self.id);
        }
    }
}
