//! Options of the logins at one server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::browser::Browser;
use super::scopes::Scopes;
use super::store::{MemoryStore, TokenStore};

/// How logins at one server are made. By default no person is asked, and logins are kept in memory.
#[derive(Clone)]
pub struct AuthOptions {
    /// A client that is registered with the issuer.
    pub client: Option<RegisteredClient>,
    /// The URL of this client's metadata document, for issuers that accept one.
    pub client_document: Option<String>,
    /// Scopes to request, whatever the server lists.
    pub scopes: Scopes,
    /// The callback port on 127.0.0.1; 0 is any.
    pub callback_port: u16,
    /// Timeout for a person to log in.
    pub patience: Duration,
    /// Opens the login page; `None` if there is no person to ask.
    pub browser: Option<Arc<dyn Browser>>,
    /// The store of logins.
    pub store: Arc<dyn TokenStore>,
}

/// A client that is registered with one issuer. It is not shown to any other issuer.
#[derive(Debug, Clone)]
pub struct RegisteredClient {
    /// The issuer's identifier, byte by byte.
    pub issuer: String,
    /// The client's id.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<SecretString>,
}

impl Default for AuthOptions {
    fn default() -> Self {
        Self {
            client: None,
            client_document: None,
            scopes: Scopes::default(),
            callback_port: 0,
            patience: Duration::from_mins(5),
            browser: None,
            store: Arc::new(MemoryStore::default()),
        }
    }
}

impl fmt::Debug for AuthOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthOptions")
            .field("client", &self.client)
            .field("client_document", &self.client_document)
            .field("scopes", &self.scopes)
            .field("callback_port", &self.callback_port)
            .field("browser", &self.browser.is_some())
            .finish_non_exhaustive()
    }
}
