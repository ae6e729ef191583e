//! Opens a separate connection to a server for each session of a legacy client.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use helve_mcp_wire::Era;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use super::Upstream;
use crate::client::connection::{Connection, RequestOptions};
use crate::client::error::RequestError;
use crate::client::limits::HANDSHAKE_TIMEOUT;
use crate::downstream::Downstream;

/// Maximum number of client sessions with one server.
const MAX_SESSIONS: usize = 64;

/// Maximum number of requests of one session that are replayed on a new connection.
const MAX_REPLAYS: usize = 1_000;

/// Requests to replay on a new connection, because their effect ends with the connection. The key says what the request sets.
type Replays = BTreeMap<String, (String, Map<String, Value>)>;

/// A connection that is opened at its first use.
type LazyConnection = Arc<OnceCell<Arc<Connection>>>;

/// All client sessions with one server, by session id.
#[derive(Default)]
pub(crate) struct ClientSessions(Mutex<HashMap<Arc<str>, ClientSession>>);

#[derive(Default)]
struct ClientSession {
    connection: LazyConnection,
    replays: Replays,
}

impl ClientSessions {
    /// Returns the connection of a session, and the requests to replay if the connection is not open yet.
    fn find(&self, session: &Arc<str>) -> Result<(LazyConnection, Replays), RequestError> {
        let mut all = self.all();
        if all.len() >= MAX_SESSIONS && !all.contains_key(session) {
            return Err(RequestError::Unreachable(format!("it already has {MAX_SESSIONS} client sessions")));
        }
        let found = all.entry(session.clone()).or_default();
        let replays = if found.connection.initialized() { Replays::new() } else { found.replays.clone() };
        Ok((found.connection.clone(), replays))
    }

    /// Records a successful request whose effect ends with the connection, to replay it on a new connection.
    pub(crate) fn record(&self, session: &Arc<str>, method: &str, params: &Map<String, Value>) {
        let mut all = self.all();
        let Some(session) = all.get_mut(session) else { return };
        let uri = || params.get("uri").and_then(Value::as_str).map(|uri| format!("resource {uri}"));
        match method {
            "logging/setLevel" => drop(session.replays.insert("level".to_owned(), (method.to_owned(), params.clone()))),
            "resources/subscribe" if session.replays.len() > MAX_REPLAYS => {}
            "resources/subscribe" => session.replays.extend(uri().map(|uri| (uri, (method.to_owned(), params.clone())))),
            "resources/unsubscribe" => drop(uri().and_then(|uri| session.replays.remove(&uri))),
            _ => {}
        }
    }

    /// Drops the connection of a session, unless a new connection has replaced it. The next request opens a new connection.
    pub(crate) fn lose(&self, session: &str, connection: &Arc<Connection>) {
        self.lose_if(session, |found| found.get().is_some_and(|found| Arc::ptr_eq(found, connection)));
    }

    fn lose_if(&self, session: &str, is_lost: impl FnOnce(&LazyConnection) -> bool) {
        let mut all = self.all();
        match all.get_mut(session) {
            Some(found) if !is_lost(&found.connection) => {}
            Some(found) if !found.replays.is_empty() => found.connection = Arc::default(),
            _ => drop(all.remove(session)),
        }
    }

    pub(super) fn clear(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, ClientSession>> {
        self.0.lock()
    }
}

impl Upstream {
    /// Returns the legacy connection of one client session. Opens the connection if necessary.
    pub(crate) async fn session(&self, session: &Arc<str>, from: &Downstream) -> Result<Arc<Connection>, RequestError> {
        if self.is_modern_only.load(Ordering::Relaxed) {
            return Err(RequestError::Protocol("the server does not support the legacy era".to_owned()));
        }
        for _ in 0..2 {
            let (cell, replays) = self.sessions.find(session)?;
            match cell.get_or_try_init(|| self.open_session(from, replays)).await {
                Ok(connection) if connection.ended().is_none() => return Ok(connection.clone()),
                // The connection ended between two requests, so no request is lost.
                Ok(ended) => self.sessions.lose(session, ended),
                Err(error) => {
                    self.sessions.lose_if(session, |found| Arc::ptr_eq(found, &cell));
                    let refused =
                        matches!(error, RequestError::Protocol(_) | RequestError::Rpc(_) | RequestError::Status { status: 400..=499, .. });
                    // Does not try the legacy handshake again with a modern server that rejected it, with whatever error.
                    if refused && self.now().is_some_and(|connection| connection.era == Era::Modern) {
                        self.is_modern_only.store(true, Ordering::Relaxed);
                        return Err(RequestError::Protocol(error.to_string()));
                    }
                    return Err(error);
                }
            }
        }
        Err(RequestError::Unreachable("it closes every new connection".to_owned()))
    }

    async fn open_session(&self, from: &Downstream, replays: Replays) -> Result<Arc<Connection>, RequestError> {
        let connection = Arc::new(Connection::open(&self.address, &self.identity_of(from), Some(Era::Legacy)).await?);
        if let Some(client) = &from.between {
            connection.set_owner(client.clone());
        }
        let (mut changes, all) = (connection.changes(), self.changes.clone());
        tokio::spawn(async move {
            while let Ok(change) = changes.recv().await {
                let _ = all.send(change);
            }
        });
        let replay = async {
            for (method, params) in replays.into_values() {
                if let Err(error) = connection.request(&method, &params, &RequestOptions::default()).await {
                    tracing::debug!(%error, method, "MCP server refused a request that was replayed on a new connection");
                }
            }
        };
        let _ = tokio::time::timeout(HANDSHAKE_TIMEOUT, replay).await;
        Ok(connection)
    }

    /// Ends a client session and closes its connection.
    pub(crate) fn end_session(&self, session: &str) {
        self.sessions.all().remove(session);
    }
}
