//! A server of the older contract: it lists its tools at one address and runs them at `/execute` below it.

mod listing;
mod tool;

use std::sync::Arc;
use std::time::Duration;

use helve_core::authored::FieldError;
use helve_core::{Redactor, SourceId, SourceState, ToolSource};
use helve_fetch::Fetch;
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::listing::Listing;
use crate::definition::RemoteDefinition;

const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_mins(1);

impl RemoteDefinition {
    /// Everything in it that must never be shown.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        self.mcp_api_key.iter().flat_map(crate::auth::spellings).collect()
    }

    /// Whether a tool of this name could come from the server.
    #[must_use]
    pub fn may_bring(&self, name: &str) -> bool {
        let own = match self.prefix() {
            "" => Some(name),
            prefix => name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')),
        };
        own.is_some_and(|own| {
            !own.is_empty()
                && (self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(own)))
                && !self.exclude.iter().any(|pattern| pattern.matches(own))
        })
    }

    /// What the names of its tools begin with.
    fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(&self.name)
    }
}

/// The tools of a server of the older contract. The server may come later: it is asked until it answers.
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
    /// Begins to ask a server for its tools, in a task that ends with the source.
    ///
    /// # Errors
    /// Where the definition has a mistake, with the field it is in.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn connect(definition: &RemoteDefinition, fetch: &Fetch, redactor: &Redactor) -> Result<Arc<Self>, FieldError> {
        redactor.add(definition.secrets());
        let listing = Listing::read(definition, fetch, redactor)?;
        let state = Arc::new(watch::Sender::new(SourceState::Connecting));
        let id = SourceId::from(format!("mcp:{}", definition.name).as_str());
        let task = tokio::spawn(ask(listing, id.clone(), state.clone()));
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

/// Asks until there is a response, less and less often.
async fn ask(listing: Listing, id: SourceId, state: Arc<watch::Sender<SourceState>>) {
    let mut delay = FIRST_DELAY;
    loop {
        match listing.ask().await {
            Ok(tools) => {
                state.send_replace(SourceState::Ready(tools));
                return;
            }
            Err(why) => {
                tracing::warn!(source = %id, %why, ?delay, "the server gave no list of tools; it is asked again");
                state.send_replace(SourceState::Failed(why.into()));
            }
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(LONGEST_DELAY);
    }
}
