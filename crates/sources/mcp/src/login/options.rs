//! Options of the login at one server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::browser::Browser;
use super::scopes::Scopes;
use super::store::{MemoryStore, TokenStore};

/// Options of the login at one server. By default no person is asked to log in, and logins are stored in memory.
#[derive(Clone)]
pub struct AuthOptions {
    /// The client that is registered with the issuer; with `None`, Helve registers itself.
    pub client: Option<RegisteredClient>,
    /// The URL of this client's metadata document, for issuers that accept one.
    pub client_document: Option<String>,
    /// The scopes to request instead of those that the server lists.
    pub scopes: Scopes,
    /// The port of the login callback on 127.0.0.1; 0 stands for any free port.
    pub callback_port: u16,
    /// The timeout for a person to log in.
    pub patience: Duration,
    /// Opens the login page; `None` if no person can log in.
    pub browser: Option<Arc<dyn Browser>>,
    /// The store of logins.
    pub store: Arc<dyn TokenStore>,
}

/// A client that is registered with one issuer. Helve never sends its data to another issuer.
#[derive(Debug, Clone)]
pub struct RegisteredClient {
    /// The identifier of the issuer, byte by byte as in its metadata.
    pub issuer: String,
    /// The id of the client.
    pub id: String,
    /// The secret of the client, if it has one.
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
