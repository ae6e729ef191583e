//! What servers are connected with: HTTP, secrets, approvals, logins.

use std::fmt;
use std::sync::Arc;

use helve_core::Redactor;
use helve_fetch::{ConnectionPool, Fetch};

use super::era_store::EraStore;
use crate::login::{Browser, MemoryStore, TokenStore};
use crate::pin::PinStore;

/// What servers are connected with.
#[derive(Clone)]
pub struct McpOptions {
    /// HTTP connections.
    pub connections: ConnectionPool,
    /// The secrets that must never show.
    pub redactor: Redactor,
    /// The tool definitions that people approved; `None` uses every definition as it comes.
    pub pins: Option<Arc<dyn PinStore>>,
    /// The known eras of servers; `None` probes each server every time.
    pub eras: Option<Arc<dyn EraStore>>,
    /// Single HTTP requests, for logins.
    pub fetch: Fetch,
    /// The store of logins.
    pub logins: Arc<dyn TokenStore>,
    /// Opens the login page for a person; `None` if there is no person to ask.
    pub browser: Option<Arc<dyn Browser>>,
    /// The URL of this client's metadata document, for issuers that accept one.
    pub client_document: Option<String>,
}

impl fmt::Debug for McpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpOptions").field("client_document", &self.client_document).finish_non_exhaustive()
    }
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            connections: ConnectionPool::default(),
            redactor: Redactor::default(),
            pins: None,
            eras: None,
            fetch: Fetch::default(),
            logins: Arc::new(MemoryStore::default()),
            browser: None,
            client_document: None,
        }
    }
}
