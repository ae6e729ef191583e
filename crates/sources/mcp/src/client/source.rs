//! A tool source for the tools of an MCP server.

mod live;
mod report;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_core::authored::FieldError;
use helve_core::{Digest, SourceId, SourceState, ToolSource};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::live::Live;
use super::connection::{Connection, ServerAddress};
use super::error::RequestError;
use super::handshake::ClientIdentity;
use super::offer::Offer;
use super::options::McpOptions;
use super::upstream::Upstream;
use crate::definition::McpDefinition;
use crate::login::Browser;

pub use report::ServerReport;

/// The tool source of one MCP server. Dropping the source disconnects from the server.
pub struct McpSource {
    id: SourceId,
    live: Arc<Live>,
    task: JoinHandle<()>,
    project: PathBuf,
    options: McpOptions,
}

impl fmt::Debug for McpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpSource").field("id", &self.id).field("state", &*self.live.state.borrow()).finish_non_exhaustive()
    }
}

impl McpSource {
    /// Starts to connect to a server, in a background task that ends when the source is dropped.
    ///
    /// # Errors
    /// Returns an error with the name of the field if the definition is invalid.
    ///
    /// # Panics
    /// Panics if called outside of a Tokio runtime.
    pub fn connect(definition: &McpDefinition, project: &Path, options: &McpOptions) -> Result<Arc<Self>, FieldError> {
        options.redactor.add_written(definition.secrets());
        let address = definition.read_address(project, options)?;
        let identity = definition.identity(project);
        let capabilities = json!({"elicitation": {"form": {}, "url": {}}});
        let upstream = Arc::new(Upstream::new(definition.clone(), identity, address, capabilities, options.eras.clone()));
        let live = Live::new(upstream, options.pins.clone());
        let task = tokio::spawn(live.clone().run());
        let id = SourceId::from(format!("mcp:{}", definition.name).as_str());
        Ok(Arc::new(Self { id, live, task, project: project.to_owned(), options: options.clone() }))
    }

    /// Returns the current state of the server, for people.
    #[must_use]
    pub fn report(&self) -> ServerReport {
        self.live.report.read().clone()
    }

    /// Returns the digest under which a pin store keeps the approved definitions of the server.
    #[must_use]
    pub fn identity(&self) -> Digest {
        self.live.upstream.identity
    }

    pub(crate) fn upstream(&self) -> &Arc<Upstream> {
        &self.live.upstream
    }

    /// Lets a person log in to the server with `browser`, then reconnects to the server.
    ///
    /// # Errors
    /// Returns an error if the login fails, the server cannot be reached, or the server is a program, which needs no login.
    pub async fn login(&self, browser: Arc<dyn Browser>) -> Result<(), RequestError> {
        let options = McpOptions { browser: Some(browser), ..self.options.clone() };
        let definition = &self.live.upstream.definition;
        let address = definition.read_address(&self.project, &options).map_err(|error| RequestError::Protocol(error.to_string()))?;
        if matches!(address, ServerAddress::Command(_)) {
            return Err(RequestError::LoginRequired("a program on this machine needs no login".to_owned()));
        }
        Connection::open(&address, &ClientIdentity::helve(json!({})), None).await?;
        self.live.reconnect.notify_one();
        Ok(())
    }

    /// Removes the stored login of the server.
    ///
    /// # Errors
    /// Returns an error if the store cannot remove the login.
    pub async fn logout(&self) -> Result<(), String> {
        self.live.upstream.definition.logout(&self.options).await
    }

    /// Waits until the first attempt to connect to the server has succeeded or failed.
    pub async fn settled(&self) {
        let mut state = self.live.state.subscribe();
        // Cannot fail: `self` owns the sender.
        let _ = state.wait_for(|state| !matches!(state, SourceState::Connecting)).await;
    }

    /// Returns the annotations, icons and `_meta` of the server's tools, each with the implementation digest of the tool. Empty if the
    /// server is not trusted.
    #[must_use]
    pub fn extra_fields(&self) -> Vec<(Digest, Map<String, Value>)> {
        if !self.live.upstream.definition.trusted {
            return Vec::new();
        }
        let extra = |offer: &Offer| {
            let fields = ["annotations", "icons", "_meta"];
            fields.iter().filter_map(|field| Some(((*field).to_owned(), offer.definition.get(*field)?.clone()))).collect()
        };
        self.report().offers.iter().map(|offer| (self.live.implementation(offer), extra(offer))).collect()
    }

    /// Reloads the approved definitions now instead of at the next interval.
    pub fn check_approvals(&self) {
        self.live.publish();
    }
}

impl Drop for McpSource {
    fn drop(&mut self) {
        self.task.abort();
        // Calls to tools of this source that are still in use fail from now on.
        self.live.upstream.close("it is not part of the project any more");
    }
}

impl ToolSource for McpSource {
    fn id(&self) -> &SourceId {
        &self.id
    }

    fn may_bring(&self, name: &str) -> bool {
        self.live.upstream.definition.may_bring(name)
    }

    fn withholds(&self, name: &str) -> bool {
        self.may_bring(name) && self.report().withheld().any(|offer| name.ends_with(offer.name.as_str()))
    }

    fn tools(&self) -> watch::Receiver<SourceState> {
        self.live.state.subscribe()
    }
}
