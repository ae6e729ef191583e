//! The store of logins, and the stored data.

use std::collections::HashMap;
use std::fmt;

use futures_util::future::BoxFuture;
use helve_core::Timestamp;
use helve_fetch::HeaderValue;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

use super::scopes::Scopes;

/// Time in seconds before its expiry at which a token is refreshed; at most a tenth of its lifetime.
const MARGIN_SECONDS: i64 = 60;

/// Stores logins where only their owner can read them.
///
/// The key is the URL of the MCP server, which is not a valid file name. The document is a text that contains the tokens and says which
/// issuer and server they belong to. A store must write a document completely or not at all.
pub trait TokenStore: Send + Sync {
    /// Loads the document of a server. Returns `None` if none was saved.
    ///
    /// # Errors
    /// Returns why the document cannot be read.
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, String>>;

    /// Saves the document of a server, and replaces an existing one.
    ///
    /// # Errors
    /// Returns why the document cannot be saved.
    fn save<'a>(&'a self, key: &'a str, document: SecretString) -> BoxFuture<'a, Result<(), String>>;

    /// Removes the document of a server. A missing document is not an error.
    ///
    /// # Errors
    /// Returns why the document cannot be removed.
    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), String>>;
}

/// Stores logins in memory, until the process ends.
#[derive(Default)]
pub struct MemoryStore(Mutex<HashMap<String, SecretString>>);

impl TokenStore for MemoryStore {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, String>> {
        let document = self.0.lock().get(key).cloned();
        Box::pin(async { Ok(document) })
    }

    fn save<'a>(&'a self, key: &'a str, document: SecretString) -> BoxFuture<'a, Result<(), String>> {
        self.0.lock().insert(key.to_owned(), document);
        Box::pin(async { Ok(()) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), String>> {
        self.0.lock().remove(key);
        Box::pin(async { Ok(()) })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

/// A login at a server: the issuer, the client, the server, the tokens and the scopes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Login {
    pub(super) issuer: String,
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    pub(super) client: Client,
    /// The tokens; `None` if the login has no valid tokens, only a registration.
    pub(super) tokens: Option<Tokens>,
    /// The requested scopes. A new login also requests the earlier scopes, so that the new token can replace the old one.
    pub(super) scopes: Scopes,
}

/// A client of one issuer. Helve never sends its data to another issuer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    #[serde(default, serialize_with = "exposed", skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<SecretString>,
    pub(super) proof: ClientAuth,
    pub(super) origin: ClientOrigin,
    /// The callback URL with which the client was registered.
    pub(super) redirect_uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret_expires: Option<Timestamp>,
}

/// How Helve got a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientOrigin {
    /// A person configured the client. Its secret is not stored with the login.
    Given,
    /// The id of the client is the URL of its metadata document.
    Document,
    /// Helve registered the client dynamically.
    Registered,
}

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ClientAuth {
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "none")]
    None,
}

/// The tokens that an issuer issued.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Tokens {
    #[serde(serialize_with = "always_exposed")]
    pub(super) access: SecretString,
    #[serde(default, serialize_with = "exposed", skip_serializing_if = "Option::is_none")]
    pub(super) refresh: Option<SecretString>,
    pub(super) issued: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<Timestamp>,
}

impl Tokens {
    /// Returns the `Authorization` header with the access token.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::try_from(format!("Bearer {}", self.access.expose_secret())).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Returns whether the access token has expired or is about to expire.
    pub(super) fn is_old(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| {
            let life = expires.as_second().saturating_sub(self.issued.as_second());
            now.as_second() >= expires.as_second().saturating_sub(MARGIN_SECONDS.min(life / 10))
        })
    }
}

impl Login {
    /// Deserialises a stored document. Returns `None` if the document is invalid.
    pub(super) fn read(document: &SecretString) -> Option<Self> {
        serde_json::from_str(document.expose_secret()).ok()
    }

    /// Serialises the login, without a configured client secret.
    pub(super) fn write(&self) -> Option<SecretString> {
        let mut copy = self.clone();
        if copy.client.origin == ClientOrigin::Given {
            copy.client.secret = None;
        }
        serde_json::to_string(&copy).ok().map(SecretString::from)
    }

    pub(super) fn header(&self) -> Option<HeaderValue> {
        self.tokens.as_ref()?.header()
    }

    pub(super) fn refresh(&self) -> Option<&SecretString> {
        self.tokens.as_ref()?.refresh.as_ref()
    }

    /// Returns all secrets of the login: tokens and client secret.
    pub(super) fn secrets(&self) -> impl Iterator<Item = SecretString> {
        let tokens = self.tokens.iter().flat_map(|tokens| std::iter::once(&tokens.access).chain(&tokens.refresh));
        tokens.chain(&self.client.secret).cloned()
    }
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn exposed<S: Serializer>(secret: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(SecretString::expose_secret).serialize(serializer)
}

fn always_exposed<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    secret.expose_secret().serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(origin: ClientOrigin) -> Login {
        let at = |second| Timestamp::from_second(second).expect("a time");
        Login {
            issuer: "https://login.example".into(),
            resource: "https://mcp.example".into(),
            token_endpoint: "https://login.example/token".into(),
            client: Client {
                id: "me".into(),
                secret: Some("canary-secret".to_owned().into()),
                proof: ClientAuth::Basic,
                origin,
                redirect_uri: "http://127.0.0.1:1/callback".into(),
                secret_expires: None,
            },
            tokens: Some(Tokens {
                access: "canary-access".to_owned().into(),
                refresh: Some("canary-refresh".to_owned().into()),
                issued: at(1000),
                expires: Some(at(1300)),
            }),
            scopes: Scopes::read("a b"),
        }
    }

    #[tokio::test]
    async fn a_login_survives_its_store() {
        let store = MemoryStore::default();
        let document = login(ClientOrigin::Registered).write().expect("a document");
        store.save("key", document.clone()).await.expect("it is kept");
        let back = Login::read(&store.load("key").await.expect("a store").expect("a document")).expect("a login");
        assert_eq!(back.write().expect("a document").expose_secret(), document.expose_secret());
        assert_eq!(back.secrets().count(), 3);
        store.remove("key").await.expect("it is forgotten");
        assert!(store.load("key").await.expect("a store").is_none());
        assert!(Login::read(&"{\"issuer\": 1}".to_owned().into()).is_none());
    }

    #[test]
    fn a_secret_that_a_person_keeps_is_not_kept_twice() {
        let document = login(ClientOrigin::Given).write().expect("a document");
        assert!(!document.expose_secret().contains("canary-secret"));
        assert!(login(ClientOrigin::Registered).write().expect("a document").expose_secret().contains("canary-secret"));
        assert!(!format!("{:?}", login(ClientOrigin::Given)).contains("canary"));
    }

    #[test]
    fn a_token_is_old_shortly_before_its_end() {
        let tokens = login(ClientOrigin::Given).tokens.expect("tokens");
        let is_old = |second| tokens.is_old(Timestamp::from_second(second).expect("a time"));
        assert!(!is_old(1269) && is_old(1270) && is_old(2000));
        assert!(!Tokens { expires: None, ..tokens.clone() }.is_old(Timestamp::MAX));
        let header = tokens.header().expect("a header");
        assert!(header.is_sensitive() && header == "Bearer canary-access");
    }
}
