//! Watches resources for modern clients. All clients share one subscription to the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helve_mcp_wire::Era;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Upstream;
use crate::client::connection::RequestOptions;
use crate::client::error::RequestError;
use crate::client::limits::HANDSHAKE_TIMEOUT;

/// Maximum number of watched resources of one server.
const MAX_WATCHED: usize = 1_000;
/// Delay before an ended subscription is opened again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The resources of one server that clients watch.
#[derive(Default)]
pub(super) struct ResourceWatches(Mutex<State>);

#[derive(Default)]
struct State {
    watched: BTreeMap<String, Watch>,
    /// The subscription to all watched resources of a modern server. Dropping the guard cancels it.
    subscription: Option<DropGuard>,
}

#[derive(Default)]
struct Watch {
    /// The number of clients that watch the resource.
    count: usize,
    /// Whether Helve has subscribed to the resource on the server.
    subscribed: bool,
}

impl Upstream {
    /// Adds a client that watches a resource if `more` is set, otherwise removes one. Changes the subscription on the server if necessary.
    pub(crate) async fn watch(self: &Arc<Self>, uri: &str, more: bool) -> Result<(), RequestError> {
        if !self.watches.count(uri, more) {
            return Ok(());
        }
        if self.era().await? == Era::Legacy {
            return self.subscribe(uri, more).await;
        }
        self.watches.subscribe_all(self);
        Ok(())
    }

    /// Renews all subscriptions on a new connection to a legacy server, which forgets them with the old connection.
    pub(crate) fn renew_watches(self: &Arc<Self>) {
        if self.now().is_none_or(|connection| connection.era == Era::Modern) {
            return;
        }
        let watched = self.watches.reset();
        let upstream = self.clone();
        tokio::spawn(async move {
            for uri in watched {
                if let Err(error) = upstream.subscribe(&uri, true).await {
                    tracing::debug!(%error, "MCP server refused to renew the subscription to a resource");
                }
            }
        });
    }

    async fn subscribe(&self, uri: &str, more: bool) -> Result<(), RequestError> {
        let method = if more { "resources/subscribe" } else { "resources/unsubscribe" };
        let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
        let options = RequestOptions { timeout: Some(HANDSHAKE_TIMEOUT), ..RequestOptions::default() };
        self.request(method, &params, &options).await?;
        if more {
            self.watches.set_subscribed(uri);
        }
        Ok(())
    }
}

impl ResourceWatches {
    /// Adds or removes a client. Returns whether the subscription on the server must change.
    fn count(&self, uri: &str, more: bool) -> bool {
        let watched = &mut self.0.lock().watched;
        if more {
            if watched.len() >= MAX_WATCHED && !watched.contains_key(uri) {
                return false;
            }
            let watch = watched.entry(uri.to_owned()).or_default();
            watch.count += 1;
            // Also tries again if the server rejected an earlier subscription.
            return !watch.subscribed;
        }
        let Some(watch) = watched.get_mut(uri) else { return false };
        watch.count -= 1;
        let last = watch.count == 0;
        if last {
            watched.remove(uri);
        }
        last
    }

    fn set_subscribed(&self, uri: &str) {
        if let Some(watch) = self.0.lock().watched.get_mut(uri) {
            watch.subscribed = true;
        }
    }

    /// Marks all resources as not subscribed, and returns their URIs.
    fn reset(&self) -> Vec<String> {
        let watched = &mut self.0.lock().watched;
        for watch in watched.values_mut() {
            watch.subscribed = false;
        }
        watched.keys().cloned().collect()
    }

    /// Replaces the subscription on a modern server with one to all watched resources.
    fn subscribe_all(&self, upstream: &Arc<Upstream>) {
        let mut state = self.0.lock();
        // Dropping the guard cancels the previous subscription.
        state.subscription = None;
        if state.watched.is_empty() {
            return;
        }
        for watch in state.watched.values_mut() {
            watch.subscribed = true;
        }
        let uris: Vec<Value> = state.watched.keys().map(|uri| json!(uri)).collect();
        let params = Map::from_iter([("notifications".to_owned(), json!({"resourceSubscriptions": uris}))]);
        let upstream = Arc::downgrade(upstream);
        let cancel = CancellationToken::new();
        state.subscription = Some(cancel.clone().drop_guard());
        tokio::spawn(async move {
            while let Some(upstream) = upstream.upgrade().filter(|_| !cancel.is_cancelled()) {
                // The connection's changes receive the notifications. A server that does not know the method sends none.
                let options = RequestOptions { cancel: cancel.clone(), ..RequestOptions::default() };
                if let Err(RequestError::Rpc(error)) = upstream.request("subscriptions/listen", &params, &options).await {
                    tracing::debug!(%error, "MCP server refused the subscription to resources");
                    return;
                }
                drop(upstream);
                tokio::select! {
                    () = tokio::time::sleep(RETRY_DELAY) => {}
                    () = cancel.cancelled() => return,
                }
            }
        });
    }

    /// Removes all clients, and cancels the subscription.
    pub(super) fn clear(&self) {
        *self.0.lock() = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_and_the_last_client_count() {
        let watches = ResourceWatches::default();
        assert!(watches.count("a", true));
        watches.set_subscribed("a");
        assert!(!watches.count("a", true));
        assert!(!watches.count("a", false));
        assert!(watches.count("a", false));
        assert!(!watches.count("a", false), "no client is left");
        assert!((0..2 * MAX_WATCHED).filter(|number| watches.count(&number.to_string(), true)).count() == MAX_WATCHED);
    }

    #[test]
    fn what_the_server_refused_or_forgot_is_asked_for_again() {
        let watches = ResourceWatches::default();
        assert!(watches.count("a", true) && watches.count("a", true), "the server was never asked");
        watches.set_subscribed("a");
        assert!(!watches.count("a", true));
        assert_eq!(watches.reset(), ["a"]);
        assert!(watches.count("a", true));
    }
}
