//! Listening to changes, as servers of the newer era want to be asked to tell them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_mcp_wire::{CODES, Era, RpcError};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::caller::BackChannel;
use crate::client::{Connection, How, Trouble};

/// How long is waited until the server says that it will tell.
const HEARD: Duration = Duration::from_secs(1);

/// A request that stands as long as this lives. What it brings goes where all changes go.
pub(crate) struct Listening(JoinHandle<bool>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listening {
    /// Begins to listen, and waits until nothing is missed any more. Nothing where the server tells unasked, or not at all.
    pub(crate) async fn begin(connection: &Arc<Connection>) -> Option<Self> {
        let wanted = wanted(connection)?;
        let params = Map::from_iter([("notifications".to_owned(), Value::Object(wanted))]);
        let (heard, is_heard) = oneshot::channel();
        let channel: Arc<dyn BackChannel> = Arc::new(Heard(Mutex::new(Some(heard))));
        let connection = connection.clone();
        let standing = Self(tokio::spawn(async move {
            let how = How { channel: Some(channel), ..How::default() };
            match connection.request("subscriptions/listen", &params, &how).await {
                Ok(_) | Err(Trouble::Gone(_) | Trouble::Late(_)) => true,
                Err(trouble) => {
                    tracing::debug!(%trouble, "the server does not tell of changes");
                    false
                }
            }
        }));
        // A server that does not say so may still tell.
        let _ = tokio::time::timeout(HEARD, is_heard).await;
        Some(standing)
    }

    /// Waits until the request is over; says whether it is to be made again.
    pub(crate) async fn end(&mut self) -> bool {
        (&mut self.0).await.unwrap_or(false)
    }
}

/// What a server says it can tell of.
fn wanted(connection: &Connection) -> Option<Map<String, Value>> {
    if connection.era == Era::Legacy {
        return None;
    }
    let tells = |list: &str| connection.facts.capabilities.pointer(&format!("/{list}/listChanged")).and_then(Value::as_bool) == Some(true);
    let lists = [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];
    let wanted: Map<String, Value> =
        lists.into_iter().filter(|(list, _)| tells(list)).map(|(_, name)| (name.to_owned(), json!(true))).collect();
    (!wanted.is_empty()).then_some(wanted)
}

/// Hears that the server will tell.
struct Heard(Mutex<Option<oneshot::Sender<()>>>);

impl BackChannel for Heard {
    fn notify(&self, method: &str, _: Value) {
        if method == "notifications/subscriptions/acknowledged"
            && let Some(heard) = self.0.lock().take()
        {
            // Whoever waited may have given up.
            let _ = heard.send(());
        }
    }

    fn ask(&self, _: &str, _: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        let refused = RpcError { code: CODES.method, message: "this is not offered here".to_owned(), data: None };
        Box::pin(std::future::ready(Err(refused)))
    }
}
