//! The catalogue as an MCP server: calls go the same way as everyone's, with the same rules.

mod asking;
mod calls;
mod kept;
mod tasks;
mod words;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::Digest;
use helve_mcp::Gateway;
use helve_mcp::serve::{About, Backend, Change, Incoming};
use helve_mcp_wire::{CODES, Era, RpcError};
use helve_tools::{Selection, Toolkit, ToolkitError, View};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use self::kept::AllKept;
use self::tasks::Tasks;
use self::words::{describe, internal, refusal};
use super::Helve;

/// As which agent clients count in permission rules.
const AGENT: &str = "mcp";
/// How many changes wait for a client.
const CHANGES: usize = 64;
/// How long a list waits for servers that are just being connected.
const SETTLE: Duration = Duration::from_secs(5);

/// What is served to MCP clients.
#[derive(Debug, Clone, Default)]
pub struct McpServing {
    /// Only the tools of these sets; all tools where there are none.
    pub sets: Vec<Arc<str>>,
    /// Whether what servers have besides tools is passed on, and their questions to clients.
    pub gateway: bool,
}

impl Helve {
    /// The catalogue as an MCP server. Give it to [`helve_mcp::serve::Server`].
    ///
    /// # Errors
    /// Where a tool set is not there.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn mcp_service(&self, serving: McpServing) -> Result<Arc<dyn Backend>, ToolkitError> {
        let service = Arc::new_cyclic(|own| Service {
            own: own.clone(),
            helve: self.clone(),
            serving,
            changes: broadcast::Sender::new(CHANGES),
            followed: Arc::default(),
            kept: AllKept::default(),
            tasks: Tasks::default(),
        });
        service.toolkit()?;
        tokio::spawn(follow(Arc::downgrade(&service)));
        Ok(service)
    }
}

struct Service {
    own: Weak<Service>,
    helve: Helve,
    serving: McpServing,
    changes: broadcast::Sender<Change>,
    /// Servers whose changes are passed on.
    followed: Arc<Mutex<HashSet<usize>>>,
    /// Calls that go on with another request.
    kept: AllKept,
    /// Calls that clients come back for.
    tasks: Tasks,
}

/// Tells clients when the catalogue changes, and what else changes at the servers behind it.
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
            // Where no client listens, nobody needs to know.
            let _ = service.changes.send(Change::Tools);
        }
    }
}

impl Service {
    fn toolkit(&self) -> Result<Toolkit, ToolkitError> {
        if self.serving.sets.is_empty() {
            return Ok(self.helve.toolkit());
        }
        let selection = Selection { sets: self.serving.sets.clone(), ..Selection::default() };
        self.helve.catalogue.toolkit(&selection, &View::default())
    }

    fn gateway(&self) -> Option<Gateway> {
        let project = self.helve.project.as_ref().filter(|_| self.serving.gateway)?;
        Some(Gateway::new(project.servers.mcp()))
    }

    fn follow_servers(&self) {
        let Some(gateway) = self.gateway() else { return };
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        for (source, mut changes) in gateway.changes() {
            // Another file makes another source, also where the server is the same.
            let place = Arc::as_ptr(source) as usize;
            if followed.insert(place) {
                let (all, followed) = (self.changes.clone(), self.followed.clone());
                tokio::spawn(async move {
                    loop {
                        match changes.recv().await {
                            // The catalogue tells of tools, once it has them.
                            Ok(Change::Tools) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                            Ok(change) => drop(all.send(change)),
                            Err(broadcast::error::RecvError::Closed) => {
                                followed.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
                                return;
                            }
                        }
                    }
                });
            }
        }
    }

    async fn answer(&self, request: Incoming) -> Result<Value, RpcError> {
        match request.method.as_str() {
            "tools/list" => {
                // Many clients ask once.
                self.settled().await;
                Ok(json!({"tools": self.tools()?}))
            }
            "tools/call" => self.call(request).await,
            "tasks/get" | "tasks/update" | "tasks/cancel" if request.from.era == Era::Modern => self.task(&request).await,
            _ => match self.gateway() {
                Some(gateway) => gateway.handle(&request).await,
                None => None,
            }
            .unwrap_or_else(|| Err(refusal(CODES.method, format!("there is no method `{}`", request.method)))),
        }
    }

    /// Servers that are just being connected get a moment.
    async fn settled(&self) {
        let _ = tokio::time::timeout(SETTLE, self.helve.catalogue.settled()).await;
    }

    fn tools(&self) -> Result<Vec<Value>, RpcError> {
        let servers = self.helve.project.as_ref().map(|project| project.servers.mcp()).unwrap_or_default();
        let said: HashMap<Digest, Map<String, Value>> = servers.iter().flat_map(|source| source.said()).collect();
        Ok(self.toolkit().map_err(internal)?.list().map(|entry| describe(entry, &said)).collect())
    }
}

impl Backend for Service {
    fn about(&self) -> About {
        About { name: "helve".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), instructions: None }
    }

    fn capabilities(&self, era: Era) -> Value {
        let mut all = self.gateway().map(|gateway| gateway.capabilities(era)).unwrap_or_default();
        all.insert("tools".to_owned(), json!({"listChanged": true}));
        if era == Era::Modern {
            all.insert("extensions".to_owned(), json!({tasks::EXTENSION: {}}));
        }
        Value::Object(all)
    }

    fn handle(&self, request: Incoming) -> BoxFuture<'_, Result<Value, RpcError>> {
        Box::pin(self.answer(request))
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
