//! The connections that sessions of clients of the older era have for themselves.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use helve_mcp_wire::Era;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use super::Upstream;
use crate::caller::Downstream;
use crate::client::{Connection, Hello, How, Trouble};
use crate::limits::GREETING;

/// How many sessions of clients have a connection of their own.
const MAX_SESSIONS: usize = 64;

/// How many resources of one session are remembered.
const MAX_TOLD: usize = 1_000;

/// What a server was told that it must be told again when it was gone, by what it is about.
type Told = BTreeMap<String, (String, Map<String, Value>)>;

/// A connection that is made when it is first needed.
type Opened = Arc<OnceCell<Arc<Connection>>>;

/// All sessions with one server.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<Arc<str>, Session>>);

#[derive(Default)]
struct Session {
    connection: Opened,
    told: Told,
}

impl Sessions {
    /// The connection of a session, made or not, and what must be said on a new one.
    fn find(&self, session: &Arc<str>) -> Result<(Opened, Told), Trouble> {
        let mut all = self.all();
        if all.len() >= MAX_SESSIONS && !all.contains_key(session) {
            return Err(Trouble::Unreachable(format!("{MAX_SESSIONS} sessions use it already")));
        }
        let found = all.entry(session.clone()).or_default();
        let told = if found.connection.initialized() { Told::new() } else { found.told.clone() };
        Ok((found.connection.clone(), told))
    }

    /// The server has taken a request. What it would forget with the connection is remembered.
    pub(super) fn heard(&self, session: &Arc<str>, method: &str, params: &Map<String, Value>) {
        let mut all = self.all();
        let Some(session) = all.get_mut(session) else { return };
        let uri = || params.get("uri").and_then(Value::as_str).map(|uri| format!("resource {uri}"));
        match method {
            "logging/setLevel" => drop(session.told.insert("level".to_owned(), (method.to_owned(), params.clone()))),
            "resources/subscribe" if session.told.len() > MAX_TOLD => {}
            "resources/subscribe" => session.told.extend(uri().map(|uri| (uri, (method.to_owned(), params.clone())))),
            "resources/unsubscribe" => drop(uri().and_then(|uri| session.told.remove(&uri))),
            _ => {}
        }
    }

    /// The connection of a session is over; the next request makes another, unless one has done so already.
    pub(super) fn lose(&self, session: &str, connection: &Arc<Connection>) {
        self.lose_if(session, |found| found.get().is_some_and(|found| Arc::ptr_eq(found, connection)));
    }

    fn lose_if(&self, session: &str, is_lost: impl FnOnce(&Opened) -> bool) {
        let mut all = self.all();
        match all.get_mut(session) {
            Some(found) if !is_lost(&found.connection) => {}
            Some(found) if !found.told.is_empty() => found.connection = Arc::default(),
            _ => drop(all.remove(session)),
        }
    }

    pub(super) fn clear(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, Session>> {
        self.0.lock()
    }
}

impl Upstream {
    /// The connection of one session of a client, in the older era.
    pub(super) async fn session(&self, session: &Arc<str>, from: &Downstream) -> Result<Arc<Connection>, Trouble> {
        if self.is_modern_only.load(Ordering::Relaxed) {
            return Err(Trouble::Protocol("it does not speak the older era".to_owned()));
        }
        for _ in 0..2 {
            let (cell, told) = self.sessions.find(session)?;
            match cell.get_or_try_init(|| self.open_session(from, told)).await {
                Ok(connection) if connection.ended().is_none() => return Ok(connection.clone()),
                // It ended while nobody looked, so nothing is lost yet.
                Ok(ended) => self.sessions.lose(session, ended),
                Err(trouble) => {
                    self.sessions.lose_if(session, |found| Arc::ptr_eq(found, &cell));
                    let refused = matches!(trouble, Trouble::Protocol(_) | Trouble::Refused(_) | Trouble::Status { status: 400..=499, .. });
                    // Whatever its words, a server that speaks the newer era and does not know the older greeting is not asked for it again.
                    if refused && self.now().is_some_and(|connection| connection.era == Era::Modern) {
                        self.is_modern_only.store(true, Ordering::Relaxed);
                        return Err(Trouble::Protocol(trouble.to_string()));
                    }
                    return Err(trouble);
                }
            }
        }
        Err(Trouble::Unreachable("it hangs up at once".to_owned()))
    }

    async fn open_session(&self, from: &Downstream, told: Told) -> Result<Arc<Connection>, Trouble> {
        let client = from.client.clone().unwrap_or_else(|| self.hello.client.clone());
        let hello = Hello { client, capabilities: from.capabilities.clone() };
        let connection = Arc::new(Connection::open(&self.place, &hello, Some(Era::Legacy)).await?);
        if let Some(client) = &from.between {
            connection.belongs_to(client.clone());
        }
        let (mut changes, all) = (connection.changes(), self.changes.clone());
        tokio::spawn(async move {
            while let Ok(change) = changes.recv().await {
                let _ = all.send(change);
            }
        });
        let again = async {
            for (method, params) in told.into_values() {
                if let Err(trouble) = connection.request(&method, &params, &How::default()).await {
                    tracing::debug!(%trouble, method, "the server was gone, and does not take again what it took before");
                }
            }
        };
        let _ = tokio::time::timeout(GREETING, again).await;
        Ok(connection)
    }

    /// A session of a client is over.
    pub(crate) fn end_session(&self, session: &str) {
        self.sessions.all().remove(session);
    }
}
