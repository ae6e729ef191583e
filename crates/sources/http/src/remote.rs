//! Remote tool servers, which list their tools at one URL and run them at `/execute` below that URL.

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

/// First delay between requests for the tool list.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// Maximum delay between requests for the tool list.
const LONGEST_DELAY: Duration = Duration::from_mins(1);

impl RemoteDefinition {
    /// Returns all secrets in the definition.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        self.mcp_api_key.iter().flat_map(crate::auth::spellings).collect()
    }

    /// Returns whether the server could have a tool with this name, judging by the prefix and the selection.
    #[must_use]
    pub fn may_bring(&self, name: &str) -> bool {
        self.selection.own_name(&self.name, name).is_some_and(|own| self.selection.selects(own))
    }

    /// Returns the prefix of the server's tool names.
    fn prefix(&self) -> &str {
        self.selection.prefix(&self.name)
    }
}

/// The tools of a remote tool server. The source requests the tool list until the server responds, so the server may start later.
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
    /// Creates the source, and starts a task that requests the tool list. Dropping the source ends the task.
    ///
    /// # Errors
    /// Returns an error if the definition is invalid.
    ///
    /// # Panics
    /// Panics if called outside a Tokio runtime.
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

/// Requests the tool list with a backoff until the server responds.
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
