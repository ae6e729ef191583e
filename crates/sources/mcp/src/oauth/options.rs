//! What a person may say about the logins of a server, and who helps with them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::browser::Browser;
use super::scopes::Scopes;
use super::store::{MemoryStore, TokenStore};

/// How logins at one server are made. By default nobody is asked, and nothing outlives the process.
#[derive(Clone)]
pub struct AuthOptions {
    /// A client that a person registered.
    pub client: Option<KnownClient>,
    /// The address of a document about this client, for issuers that read such documents.
    pub client_document: Option<String>,
    /// Scopes to ask for, whatever the server lists.
    pub scopes: Scopes,
    /// The port of 127.0.0.1 that browsers come back to; 0 is any.
    pub callback_port: u16,
    /// How long a person may take to log in.
    pub patience: Duration,
    /// The way to a person; nothing where there is none.
    pub browser: Option<Arc<dyn Browser>>,
    /// Who keeps the logins.
    pub store: Arc<dyn TokenStore>,
}

/// A client that a person registered at one issuer. No other issuer hears of it.
#[derive(Debug, Clone)]
pub struct KnownClient {
    /// The issuer, exactly as it names itself.
    pub issuer: String,
    /// The client's identifier there.
    pub id: String,
    /// Its secret, where it has one.
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
