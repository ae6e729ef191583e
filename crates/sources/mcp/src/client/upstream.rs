//! An upstream: an MCP server that Helve uses. Manages the connections to the server, and which of its tools may be called.

mod client_sessions;
mod resource_watches;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use helve_core::Digest;
use helve_core::json::canonical;
use helve_mcp_wire::{Change, Era};
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use tokio::sync::{broadcast, watch};

use self::client_sessions::ClientSessions;
use self::resource_watches::ResourceWatches;
use super::connection::{Connection, RequestOptions, ServerAddress};
use super::era_store::EraStore;
use super::error::RequestError;
use super::handshake::ClientIdentity;
use super::held_call::ParkedCalls;
use crate::definition::McpDefinition;

/// Maximum time that a call waits for a server that is still connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Capacity of the channel of changes. A receiver that lags further behind misses changes.
const CHANGES: usize = 64;
/// The key of the only input request of a [`HeldCall`](super::held_call::HeldCall).
pub(crate) const INPUT_KEY: &str = "input";

/// An MCP server that Helve uses.
pub(crate) struct Upstream {
    pub(crate) definition: McpDefinition,
    pub(crate) identity: Digest,
    pub(super) address: ServerAddress,
    pub(crate) client_identity: ClientIdentity,
    main: watch::Sender<Option<Arc<Connection>>>,
    down: Mutex<RequestError>,
    pub(crate) sessions: ClientSessions,
    approved: RwLock<HashMap<String, Digest>>,
    changes: broadcast::Sender<Change>,
    parked: Arc<ParkedCalls>,
    watches: ResourceWatches,
    /// Whether the server has rejected the legacy era.
    is_modern_only: AtomicBool,
    eras: Option<Arc<dyn EraStore>>,
}

impl Upstream {
    pub(crate) fn new(
        definition: McpDefinition,
        identity: Digest,
        address: ServerAddress,
        capabilities: Value,
        eras: Option<Arc<dyn EraStore>>,
    ) -> Self {
        Self {
            definition,
            identity,
            address,
            client_identity: ClientIdentity::helve(capabilities),
            main: watch::Sender::new(None),
            down: Mutex::new(not_connected()),
            sessions: ClientSessions::default(),
            approved: RwLock::default(),
            changes: broadcast::Sender::new(CHANGES),
            parked: Arc::default(),
            watches: ResourceWatches::default(),
            is_modern_only: AtomicBool::new(false),
            eras,
        }
    }

    /// Opens a new connection to the server, and remembers its era.
    pub(crate) async fn open(&self) -> Result<Connection, RequestError> {
        let known = self.eras.as_ref().and_then(|eras| eras.era(&self.identity)).filter(|era| *era == Era::Legacy);
        // Does not probe a server that is known as legacy, because some servers break on an unknown request.
        let opened = match Connection::open(&self.address, &self.client_identity, known).await {
            Err(RequestError::Protocol(_) | RequestError::Rpc(_) | RequestError::TimedOut(_)) if known.is_some() => {
                Connection::open(&self.address, &self.client_identity, None).await
            }
            opened => opened,
        };
        if let (Ok(connection), Some(eras)) = (&opened, &self.eras)
            && Some(connection.era) != known
        {
            eras.remember(&self.identity, connection.era);
        }
        opened
    }

    /// Sets the shared connection, or why there is none.
    pub(crate) fn set(&self, connection: Result<Arc<Connection>, RequestError>) {
        let (connection, down) = match connection {
            Ok(connection) => (Some(connection), not_connected()),
            Err(why) => (None, why),
        };
        *self.down.lock() = down;
        self.main.send_replace(connection);
    }

    /// Returns the shared connection, if there is one. It may have ended.
    pub(crate) fn now(&self) -> Option<Arc<Connection>> {
        self.main.borrow().clone()
    }

    /// Returns the shared connection. Waits briefly if the server is still connecting.
    async fn main(&self) -> Result<Arc<Connection>, RequestError> {
        if let Some(connection) = self.now().filter(|connection| connection.ended().is_none()) {
            return Ok(connection);
        }
        let mut main = self.main.subscribe();
        let is_open = |connection: &Option<Arc<Connection>>| connection.as_ref().is_some_and(|connection| connection.ended().is_none());
        // Does not wait for a server that must not be started.
        let decided = |connection: &Option<Arc<Connection>>| is_open(connection) || self.is_refused();
        match tokio::time::timeout(CONNECT_TIMEOUT, main.wait_for(decided)).await {
            Ok(Ok(connection)) => connection.clone().ok_or_else(|| self.unreachable()),
            _ => Err(self.unreachable()),
        }
    }

    fn is_refused(&self) -> bool {
        matches!(*self.down.lock(), RequestError::ScriptChanged(_))
    }

    fn unreachable(&self) -> RequestError {
        match &*self.down.lock() {
            known @ (RequestError::ScriptChanged(_) | RequestError::Unreachable(_)) => known.clone(),
            other => RequestError::Unreachable(other.to_string()),
        }
    }

    /// Closes all connections for the reason `why`, because the server is no longer used.
    pub(crate) fn close(&self, why: &str) {
        let connection = self.now();
        self.approve(HashMap::new());
        self.set(Err(RequestError::Unreachable(why.to_owned())));
        self.sessions.clear();
        self.parked.clear();
        self.watches.clear();
        // Ends the connection for its other owners; it is closed when the last of them drops it.
        if let Some(connection) = connection {
            connection.end(&RequestError::Disconnected(why.to_owned()));
        }
    }

    /// Sets the tools that may be called, each with the digest of its approved definition.
    pub(crate) fn approve(&self, tools: HashMap<String, Digest>) {
        *self.approved.write() = tools;
    }

    /// Returns whether this definition of a tool is approved.
    pub(crate) fn is_approved(&self, tool: &str, definition: Digest) -> bool {
        self.approved.read().get(tool) == Some(&definition)
    }

    /// Returns the channel of the changes that the server announces.
    pub(crate) fn changes(&self) -> &broadcast::Sender<Change> {
        &self.changes
    }

    /// Returns the calls to this server that wait for input from a person.
    pub(crate) fn parked(&self) -> &Arc<ParkedCalls> {
        &self.parked
    }

    /// Returns the era of the server. Waits briefly if the server is still connecting.
    pub(crate) async fn era(&self) -> Result<Era, RequestError> {
        self.main().await.map(|connection| connection.era)
    }

    /// Sends a request on the shared connection.
    pub(crate) async fn request(&self, method: &str, params: &Map<String, Value>, options: &RequestOptions) -> Result<Value, RequestError> {
        self.retry_if_expired(|connection| async move {
            self.check_approved(options)?;
            connection.request(method, params, options).await
        })
        .await
    }

    /// Returns an error if the called tool's definition is no longer approved. The server may have reconnected with other tools while the
    /// call waited.
    pub(crate) fn check_approved(&self, options: &RequestOptions) -> Result<(), RequestError> {
        match &options.approved {
            Some((tool, definition)) if !self.is_approved(tool, *definition) => Err(RequestError::NotApproved),
            _ => Ok(()),
        }
    }

    /// Sends a request. Sends it once more if the session has expired, because the server did not process the request.
    async fn retry_if_expired<F>(&self, send: impl Fn(Arc<Connection>) -> F) -> Result<Value, RequestError>
    where
        F: Future<Output = Result<Value, RequestError>>,
    {
        for last in [false, true] {
            let connection = self.main().await?;
            match send(connection.clone()).await {
                Err(error) if error.ends_connection() => {
                    connection.end(&error);
                    if last || error != RequestError::SessionExpired {
                        return Err(error);
                    }
                }
                result => return result,
            }
        }
        Err(RequestError::SessionExpired)
    }
}

fn not_connected() -> RequestError {
    RequestError::Unreachable("it is not connected yet".to_owned())
}

/// Returns the digest that identifies a request. Only a request with the same digest may resume a parked call.
pub(crate) fn request_digest(method: &str, params: &Map<String, Value>) -> Digest {
    Digest::of([method.as_bytes(), canonical(&Value::Object(params.clone())).as_bytes()])
}
