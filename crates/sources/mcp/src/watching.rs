//! Resources that clients of the newer era want to hear of: one request to the server stands for all of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helve_mcp_wire::Era;
use serde_json::{Map, Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::{How, Trouble};
use crate::limits::GREETING;
use crate::upstream::Upstream;

/// How many resources of one server are watched.
const MAX_WATCHED: usize = 1_000;
/// How long is waited before a request that ended is made again.
const AGAIN: Duration = Duration::from_secs(1);

/// What is watched, and by how many.
#[derive(Default)]
pub(crate) struct Watching(Mutex<State>);

#[derive(Default)]
struct State {
    watched: BTreeMap<String, usize>,
    /// The request that stands for all of them.
    standing: Option<DropGuard>,
}

impl Upstream {
    /// Watches a resource for one more client, or for one fewer.
    pub(crate) async fn watch(self: &Arc<Self>, uri: &str, more: bool) -> Result<(), Trouble> {
        if !self.watching().count(uri, more) {
            return Ok(());
        }
        if self.era().await? == Era::Legacy {
            let method = if more { "resources/subscribe" } else { "resources/unsubscribe" };
            let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
            let how = How { time: Some(GREETING), ..How::default() };
            let asked = self.ask(method, &params, &how).await.map(drop);
            if asked.is_err() && more {
                // Nobody hears of it, so the next one asks again.
                self.watching().count(uri, false);
            }
            return asked;
        }
        self.watching().stand(self);
        Ok(())
    }
}

impl Watching {
    /// Takes note of a client; says whether that changes what is watched.
    fn count(&self, uri: &str, more: bool) -> bool {
        let watched = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).watched;
        if more {
            if watched.len() >= MAX_WATCHED && !watched.contains_key(uri) {
                return false;
            }
            let count = watched.entry(uri.to_owned()).or_default();
            *count += 1;
            return *count == 1;
        }
        let Some(count) = watched.get_mut(uri) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            watched.remove(uri);
        }
        last
    }

    /// Asks the server to tell of what is watched now.
    fn stand(&self, upstream: &Arc<Upstream>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The server is told that the one before is not wanted any more.
        state.standing = None;
        if state.watched.is_empty() {
            return;
        }
        let uris: Vec<Value> = state.watched.keys().map(|uri| json!(uri)).collect();
        let params = Map::from_iter([("notifications".to_owned(), json!({"resourceSubscriptions": uris}))]);
        let upstream = Arc::downgrade(upstream);
        let cancel = CancellationToken::new();
        state.standing = Some(cancel.clone().drop_guard());
        tokio::spawn(async move {
            while let Some(upstream) = upstream.upgrade().filter(|_| !cancel.is_cancelled()) {
                // What it tells goes where all changes go; a server that does not know the method has nothing to tell.
                let how = How { cancel: cancel.clone(), ..How::default() };
                if let Err(Trouble::Refused(error)) = upstream.ask("subscriptions/listen", &params, &how).await {
                    tracing::debug!(%error, "the server does not tell of its resources");
                    return;
                }
                drop(upstream);
                tokio::select! {
                    () = tokio::time::sleep(AGAIN) => {}
                    () = cancel.cancelled() => return,
                }
            }
        });
    }

    /// Nothing is watched any more.
    pub(crate) fn stop(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_and_the_last_client_count() {
        let watching = Watching::default();
        assert!(watching.count("a", true));
        assert!(!watching.count("a", true));
        assert!(!watching.count("a", false));
        assert!(watching.count("a", false));
        assert!(!watching.count("a", false), "nobody is left to go");
        assert!((0..2 * MAX_WATCHED).filter(|number| watching.count(&number.to_string(), true)).count() == MAX_WATCHED);
    }
}
