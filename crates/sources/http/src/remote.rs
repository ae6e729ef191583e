//! A remote tool server: it lists its tools at one URL and runs them at `/execute` below it.

mod listing;
mod tool;

use std::sync::Arc;
use std::time::Duration;

use helve_core::authored::FieldError;
use helve_core::{Backoff, Redactor, SourceId, SourceState, ToolSource};
use helve_fetch::Fetch;
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::listing::Listing;
use crate::definition::RemoteDefinition;

const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_mins(1);

impl RemoteDefinition {
    /// All secrets in it.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        self.mcp_api_key.iter().flat_map(crate::auth::spellings).collect()
    }

    /// Returns whether the server could have a tool of this name.
    #[must_use]
    pub fn may_bring(&self, name: &str) -> bool {
        self.selection.own_name(&self.name, name).is_some_and(|own| self.selection.selects(own))
    }

    /// The prefix of its tool names.
    fn prefix(&self) -> &str {
        self.selection.prefix(&self.name)
    }
}

/// The tools of a remote tool server. The server may start later: its tool list is requested until it responds.
pub struct RemoteSource {
    id: SourceId,
    definition: RemoteDefinition,
    state: Arc<watch::Sender<SourceState>>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for RemoteSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteSource").field("id", &self.id).field("state", &*self.state.borrow()).finish_non_exhaustive()
    }
}

impl RemoteSource {
    /// Requests the tools of a server, in a task that ends with the source.
    ///
    /// # Errors
    /// If the definition has a mistake.
    ///
    /// # Panics
    /// If called outside a tokio runtime.
    pub fn connect(definition: &RemoteDefinition, fetch: &Fetch, redactor: &Redactor) -> Result<Arc<Self>, FieldError> {
        redactor.add(definition.secrets());
        let listing = Listing::read(definition, fetch, redactor)?;
        let state = Arc::new(watch::Sender::new(SourceState::Connecting));
        let id = SourceId::from(format!("mcp:{}", definition.name).as_str());
        let task = tokio::spawn(fetch_list(listing, id.clone(), state.clone()));
        Ok(Arc::new(Self { id, definition: definition.clone(), state, task }))
    }
}

impl Drop for RemoteSource {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ToolSource for RemoteSource {
    fn id(&self) -> &SourceId {
        &self.id
    }

    fn may_bring(&self, name: &str) -> bool {
        self.definition.may_bring(name)
    }

    fn tools(&self) -> watch::Receiver<SourceState> {
        self.state.subscribe()
    }
}

/// Requests the tool list until the server sends it.
async fn fetch_list(listing: Listing, id: SourceId, state: Arc<watch::Sender<SourceState>>) {
    let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
    let tools = loop {
        match listing.fetch().await {
            Ok(tools) => break tools,
            Err(error) => {
                let delay = backoff.delay();
                tracing::warn!(source = %id, %error, ?delay, "cannot list the tools of the server; retrying");
                state.send_replace(SourceState::Failed(error.into()));
                tokio::time::sleep(delay).await;
            }
        }
    };
    state.send_replace(SourceState::Ready(tools));
}
