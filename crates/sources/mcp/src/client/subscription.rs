//! Subscribes to the list changes of a modern server.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_mcp_wire::{Change, Era, RpcError};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::connection::{Connection, RequestOptions};
use super::elicitation::not_offered;
use super::error::RequestError;
use crate::downstream::BackChannel;

/// Timeout for the server's acknowledgement.
const ACK_TIMEOUT: Duration = Duration::from_secs(1);

/// An open `subscriptions/listen` request, which is closed on drop. The connection's changes receive its notifications.
pub(super) struct ChangeSubscription(JoinHandle<bool>);

impl Drop for ChangeSubscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ChangeSubscription {
    /// Subscribes to list changes, and waits briefly for the acknowledgement. Returns `None` if the server announces no changes, or is a
    /// legacy server, which needs no subscription.
    pub(super) async fn start(connection: &Arc<Connection>) -> Option<Self> {
        let params = Map::from_iter([("notifications".to_owned(), Value::Object(filter(connection)?))]);
        let (sender, acknowledged) = oneshot::channel();
        let channel: Arc<dyn BackChannel> = Arc::new(AckChannel(Mutex::new(Some(sender))));
        let connection = connection.clone();
        let subscription = Self(tokio::spawn(async move {
            let options = RequestOptions { channel: Some(channel), ..RequestOptions::default() };
            match connection.request("subscriptions/listen", &params, &options).await {
                Ok(_) | Err(RequestError::Disconnected(_) | RequestError::TimedOut(_)) => true,
                Err(error) => {
                    tracing::debug!(%error, "MCP server refused the subscription to changes");
                    false
                }
            }
        }));
        // A server may send changes without an acknowledgement.
        let _ = tokio::time::timeout(ACK_TIMEOUT, acknowledged).await;
        Some(subscription)
    }

    /// Waits until the subscription ends. Returns whether to subscribe again.
    pub(super) async fn end(&mut self) -> bool {
        (&mut self.0).await.unwrap_or(false)
    }
}

/// Returns the filter of the subscription: the lists whose changes the server announces. `None` if there are none, or for a legacy server.
fn filter(connection: &Connection) -> Option<Map<String, Value>> {
    if connection.era == Era::Legacy {
        return None;
    }
    let lists = Change::LISTS.into_iter().zip(["toolsListChanged", "promptsListChanged", "resourcesListChanged"]);
    let announced = lists.filter(|(change, _)| change.is_declared(&connection.facts.capabilities));
    let filter: Map<String, Value> = announced.map(|(_, name)| (name.to_owned(), json!(true))).collect();
    (!filter.is_empty()).then_some(filter)
}

/// Receives the acknowledgement of a subscription.
struct AckChannel(Mutex<Option<oneshot::Sender<()>>>);

impl BackChannel for AckChannel {
    fn notify(&self, method: &str, _: Value) {
        if method == "notifications/subscriptions/acknowledged"
            && let Some(sender) = self.0.lock().take()
        {
            // The subscriber may have stopped waiting.
            let _ = sender.send(());
        }
    }

    fn ask(&self, _: &str, _: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        not_offered()
    }
}
