//! Calls at servers of the older era that hold while a person is asked. Such a server keeps its call open, so the call goes on in a task
//! of its own; whoever made it is free, and comes back with the answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use helve_core::CallId;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::Trouble;

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

/// A call that goes on in a task of its own. Dropped, it is cancelled.
pub(crate) struct Held {
    pub(crate) work: JoinHandle<Result<Value, Trouble>>,
    pub(crate) asks: mpsc::Receiver<Ask>,
    pub(crate) cancel: CancellationToken,
    /// Cancels the call when nobody holds it any more.
    pub(crate) _guard: DropGuard,
}

/// Calls that hold, each with the question that it holds for.
#[derive(Default)]
pub(crate) struct Parked(Mutex<HashMap<String, (Held, oneshot::Sender<Value>)>>);

impl Parked {
    /// Puts a call aside, and gives the name by which it is found again. One that nobody comes back for is ended.
    pub(crate) fn put(self: &Arc<Self>, held: Held, reply: oneshot::Sender<Value>) -> Option<String> {
        let name = CallId::mint().to_string();
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if parked.len() >= MAX_PARKED {
            return None;
        }
        parked.insert(name.clone(), (held, reply));
        let (all, forgotten): (Weak<Self>, String) = (Arc::downgrade(self), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            if let Some(all) = all.upgrade() {
                all.take(&forgotten);
            }
        });
        Some(name)
    }

    /// Takes a call back.
    pub(crate) fn take(&self, name: &str) -> Option<(Held, oneshot::Sender<Value>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
    }
}
