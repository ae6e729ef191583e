//! Serves the catalogue to MCP clients. Calls from clients go through the same pipeline as all others, under the same rules.

mod calls;
mod client_call;
mod elicitation;
mod present;
mod tasks;
mod waiting_calls;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::{CancellationToken, Digest};
use helve_mcp::server::{Backend, ClientRequest, Server, ServerInfo, ServerOptions};
use helve_mcp::{Change, Gateway, McpSource};
use helve_mcp_wire::{CODES, Era, RpcError};
use helve_tools::{Selection, Toolkit, ToolkitError, View};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::broadcast;

use self::present::{describe, internal};
use self::tasks::Tasks;
use self::waiting_calls::WaitingCalls;
use crate::compose::Helve;

/// The agent name of MCP clients in permission rules.
const AGENT: &str = "mcp";
/// Maximum number of changes that a receiver may lag behind.
const CHANGES: usize = 64;
/// Timeout of listings and calls for servers that are still connecting.
const SETTLE: Duration = Duration::from_secs(5);

/// Options for serving the catalogue to MCP clients.
#[derive(Debug, Clone, Default, helve_core::Setters)]
pub struct McpServing {
    /// The tool sets to serve; all tools if the list is empty.
    pub sets: Vec<Arc<str>>,
    /// Whether to also forward resources, prompts and the like of the servers behind Helve, and their requests to clients.
    pub gateway: bool,
    /// The name that the server reports; `helve` by default.
    #[setter(skip)]
    pub name: Option<String>,
    /// The version that the server reports; Helve's own by default.
    #[setter(skip)]
    pub version: Option<String>,
    /// The server's instructions for models.
    pub instructions: Option<String>,
}

impl McpServing {
    /// Creates the default options: all tools, under the name `helve`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name and version that the server reports.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        (self.name, self.version) = (Some(name.into()), Some(version.into()));
        self
    }
}

impl Helve {
    /// Returns the catalogue as a backend for [`helve_mcp::server::Server`].
    ///
    /// # Errors
    /// Returns an error if a tool set does not exist.
    ///
    /// # Panics
    /// Panics outside of a Tokio runtime.
    pub fn mcp_service(&self, serving: McpServing) -> Result<Arc<dyn Backend>, ToolkitError> {
        let service = Arc::new_cyclic(|own| Service {
            own: own.clone(),
            helve: self.clone(),
            serving,
            changes: broadcast::Sender::new(CHANGES),
            followed: Arc::default(),
            waiting: WaitingCalls::default(),
            tasks: Tasks::default(),
        });
        service.toolkit()?;
        tokio::spawn(follow(Arc::downgrade(&service)));
        Ok(service)
    }

    /// Serves the catalogue to an MCP client on stdin and stdout, until the client disconnects.
    ///
    /// # Errors
    /// Returns an error if a tool set does not exist, or stdin and stdout cannot be used.
    pub async fn serve_stdio(&self, serving: McpServing) -> std::io::Result<()> {
        let service = self.mcp_service(serving).map_err(std::io::Error::other)?;
        let server = Server::new(service, ServerOptions::default());
        server.stdio(tokio::io::stdin(), tokio::io::stdout(), CancellationToken::new()).await
    }

    /// Serves the catalogue to MCP clients over HTTP, at `/mcp`, until `stop` is cancelled. Only clients on this machine may connect.
    ///
    /// # Errors
    /// Returns an error if a tool set does not exist, or the listener fails.
    pub async fn serve_http(&self, serving: McpServing, listener: TcpListener, stop: CancellationToken) -> std::io::Result<()> {
        let service = self.mcp_service(serving).map_err(std::io::Error::other)?;
        Server::new(service, ServerOptions::default()).listen(listener, stop).await
    }

    /// Returns the MCP servers of the project.
    #[cfg(feature = "project")]
    fn mcp_sources(&self) -> Vec<Arc<McpSource>> {
        self.project.as_ref().map(|project| project.servers.mcp()).unwrap_or_default()
    }

    #[cfg(not(feature = "project"))]
    #[expect(clippy::unused_self, reason = "only a project knows its servers")]
    fn mcp_sources(&self) -> Vec<Arc<McpSource>> {
        Vec::new()
    }
}

struct Service {
    own: Weak<Service>,
    helve: Helve,
    serving: McpServing,
    changes: broadcast::Sender<Change>,
    /// The servers whose changes are forwarded, identified by the address of their source.
    followed: Arc<Mutex<HashSet<usize>>>,
    /// Calls that wait for input from their clients.
    waiting: WaitingCalls,
    /// Calls that clients poll as tasks.
    tasks: Tasks,
}

/// Notifies clients of changes in the catalogue, and in the servers behind it.
async fn follow(service: Weak<Service>) {
    let view = View::default();
    let Some(mut snapshot) = service.upgrade().map(|service| service.helve.catalogue.snapshot(&view)) else { return };
    loop {
        let Some(catalogue) = service.upgrade().map(|service| {
            service.follow_servers();
            service.helve.catalogue.clone()
        }) else {
            return;
        };
        snapshot = catalogue.next(&view, &snapshot).await;
        if let Some(service) = service.upgrade() {
            // Fails if no client is subscribed, which does not matter.
            let _ = service.changes.send(Change::Tools);
        }
    }
}

impl Service {
    fn toolkit(&self) -> Result<Toolkit, ToolkitError> {
        if self.serving.sets.is_empty() {
            return Ok(self.helve.toolkit());
        }
        let selection = Selection::default().sets(self.serving.sets.clone());
        self.helve.catalogue.toolkit(&selection, &View::default())
    }

    fn gateway(&self) -> Option<Gateway> {
        self.serving.gateway.then(|| Gateway::new(self.helve.mcp_sources()))
    }

    fn follow_servers(&self) {
        let Some(gateway) = self.gateway() else { return };
        let mut followed = self.followed.lock();
        for (source, mut changes) in gateway.changes() {
            // A changed file creates a new source, even for the same server.
            let id = Arc::as_ptr(source) as usize;
            if followed.insert(id) {
                let (all, followed) = (self.changes.clone(), self.followed.clone());
                tokio::spawn(async move {
                    loop {
                        match changes.recv().await {
                            // The catalogue reports changed tools once it has them.
                            Ok(Change::Tools) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                            Ok(change) => drop(all.send(change)),
                            Err(broadcast::error::RecvError::Closed) => {
                                followed.lock().remove(&id);
                                return;
                            }
                        }
                    }
                });
            }
        }
    }

    async fn respond(&self, request: ClientRequest) -> Result<Value, RpcError> {
        match request.method.as_str() {
            "tools/list" => {
                // Many clients list the tools only once.
                self.settled().await;
                Ok(json!({"tools": self.tools()?}))
            }
            "tools/call" => self.call(request).await,
            "tasks/get" | "tasks/update" | "tasks/cancel" if request.from.era == Era::Modern => self.task(&request).await,
            _ => match self.gateway() {
                Some(gateway) => gateway.handle(&request).await,
                None => None,
            }
            .unwrap_or_else(|| Err(RpcError::new(CODES.method, format!("unknown method `{}`", request.method)))),
        }
    }

    /// Waits for servers that are still connecting, up to a timeout.
    async fn settled(&self) {
        let _ = tokio::time::timeout(SETTLE, self.helve.catalogue.settled()).await;
    }

    fn tools(&self) -> Result<Vec<Value>, RpcError> {
        let servers = self.helve.mcp_sources();
        let extra: HashMap<Digest, Map<String, Value>> = servers.iter().flat_map(|source| source.extra_fields()).collect();
        Ok(self.toolkit().map_err(internal)?.list().map(|entry| describe(entry, &extra)).collect())
    }
}

impl Backend for Service {
    fn about(&self) -> ServerInfo {
        let own = |given: &Option<String>, usual: &str| given.clone().unwrap_or_else(|| usual.to_owned());
        ServerInfo {
            name: own(&self.serving.name, "helve"),
            version: own(&self.serving.version, env!("CARGO_PKG_VERSION")),
            instructions: self.serving.instructions.clone(),
        }
    }

    fn capabilities(&self, era: Era) -> Value {
        let mut all = self.gateway().map(|gateway| gateway.capabilities(era)).unwrap_or_default();
        all.insert("tools".to_owned(), json!({"listChanged": true}));
        if era == Era::Modern {
            all.insert("extensions".to_owned(), json!({tasks::EXTENSION: {}}));
        }
        Value::Object(all)
    }

    fn handle(&self, request: ClientRequest) -> BoxFuture<'_, Result<Value, RpcError>> {
        Box::pin(self.respond(request))
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn session_ended(&self, session: &str) {
        if let Some(gateway) = self.gateway() {
            gateway.session_ended(session);
        }
    }
}
