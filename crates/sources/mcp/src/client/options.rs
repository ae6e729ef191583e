//! Options for connections to servers: HTTP, secrets, approved definitions, logins.

use std::fmt;
use std::sync::Arc;

use helve_core::Redactor;
use helve_fetch::{ConnectionPool, Fetch};

use super::era_store::EraStore;
use crate::login::{Browser, MemoryStore, TokenStore};
use crate::pin::PinStore;

/// Options for connections to servers.
#[derive(Clone)]
pub struct McpOptions {
    /// The pool of HTTP connections.
    pub connections: ConnectionPool,
    /// The redactor that hides secrets, to which Helve adds the secrets of servers.
    pub redactor: Redactor,
    /// The store of the tool definitions that a person approved; with `None`, Helve uses all definitions without approval.
    pub pins: Option<Arc<dyn PinStore>>,
    /// The store of the eras of servers; with `None`, Helve probes a server on every connection.
    pub eras: Option<Arc<dyn EraStore>>,
    /// The HTTP client for logins.
    pub fetch: Fetch,
    /// The store of login tokens.
    pub logins: Arc<dyn TokenStore>,
    /// Opens the login page; `None` if no person can log in.
    pub browser: Option<Arc<dyn Browser>>,
    /// The URL of this client's metadata document, for authorization servers that accept one.
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
