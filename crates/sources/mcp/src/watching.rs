//! Resources that clients of the newer era want to hear of: one request to the server stands for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helve_mcp_wire::Era;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::{How, Trouble};
use crate::limits::GREETING;
use crate::upstream::Upstream;

/// How many resources of one server are watched.
const MAX_WATCHED: usize = 1_000;
/// How long is waited before a request that ended is made again.
const AGAIN: Duration = Duration::from_secs(1);

/// What is watched.
#[derive(Default)]
pub(crate) struct Watching(Mutex<State>);

#[derive(Default)]
struct State {
    watched: BTreeMap<String, Watched>,
    /// The request that stands for all of them.
    standing: Option<DropGuard>,
}

#[derive(Default)]
struct Watched {
    /// By how many clients.
    count: usize,
    /// Whether the server was told.
    told: bool,
}

impl Upstream {
    /// Watches a resource for one more client, or for one fewer.
    pub(crate) async fn watch(self: &Arc<Self>, uri: &str, more: bool) -> Result<(), Trouble> {
        if !self.watching().count(uri, more) {
            return Ok(());
        }
        if self.era().await? == Era::Legacy {
            return self.tell_watched(uri, more).await;
        }
        self.watching().stand(self);
        Ok(())
    }

    /// The server is connected anew. One of the older era has forgotten what it was to tell of.
    pub(crate) fn watch_again(self: &Arc<Self>) {
        if self.now().is_none_or(|connection| connection.era == Era::Modern) {
            return;
        }
        let watched = self.watching().forgotten();
        let upstream = self.clone();
        tokio::spawn(async move {
            for uri in watched {
                if let Err(trouble) = upstream.tell_watched(&uri, true).await {
                    tracing::debug!(%trouble, "the server does not tell of a resource any more");
                }
            }
        });
    }

    async fn tell_watched(&self, uri: &str, more: bool) -> Result<(), Trouble> {
        let method = if more { "resources/subscribe" } else { "resources/unsubscribe" };
        let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
        let how = How { time: Some(GREETING), ..How::default() };
        self.ask(method, &params, &how).await?;
        if more {
            self.watching().told(uri);
        }
        Ok(())
    }
}

impl Watching {
    /// Takes note of a client; says whether the server must be told.
    fn count(&self, uri: &str, more: bool) -> bool {
        let watched = &mut self.0.lock().watched;
        if more {
            if watched.len() >= MAX_WATCHED && !watched.contains_key(uri) {
                return false;
            }
            let watched = watched.entry(uri.to_owned()).or_default();
            watched.count += 1;
            // One that the server refused is asked for again.
            return !watched.told;
        }
        let Some(one) = watched.get_mut(uri) else { return false };
        one.count -= 1;
        let last = one.count == 0;
        if last {
            watched.remove(uri);
        }
        last
    }

    /// A server of the older era tells of a resource from now on.
    fn told(&self, uri: &str) {
        if let Some(watched) = self.0.lock().watched.get_mut(uri) {
            watched.told = true;
        }
    }

    /// The server was told of nothing; gives what it must be told of.
    fn forgotten(&self) -> Vec<String> {
        let watched = &mut self.0.lock().watched;
        for watched in watched.values_mut() {
            watched.told = false;
        }
        watched.keys().cloned().collect()
    }

    /// Asks the server to tell of what is watched now.
    fn stand(&self, upstream: &Arc<Upstream>) {
        let mut state = self.0.lock();
        // The server is told that the one before is not wanted any more.
        state.standing = None;
        if state.watched.is_empty() {
            return;
        }
        for watched in state.watched.values_mut() {
            watched.told = true;
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
        *self.0.lock() = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_and_the_last_client_count() {
        let watching = Watching::default();
        assert!(watching.count("a", true));
        watching.told("a");
        assert!(!watching.count("a", true));
        assert!(!watching.count("a", false));
        assert!(watching.count("a", false));
        assert!(!watching.count("a", false), "nobody is left to go");
        assert!((0..2 * MAX_WATCHED).filter(|number| watching.count(&number.to_string(), true)).count() == MAX_WATCHED);
    }

    #[test]
    fn what_the_server_refused_or_forgot_is_asked_for_again() {
        let watching = Watching::default();
        assert!(watching.count("a", true) && watching.count("a", true), "it was never told");
        watching.told("a");
        assert!(!watching.count("a", true));
        assert_eq!(watching.forgotten(), ["a"]);
        assert!(watching.count("a", true));
    }
}
