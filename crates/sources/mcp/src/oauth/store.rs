//! What is kept of a login, and the trait of whoever keeps it.

use std::collections::HashMap;
use std::fmt;

use futures_util::future::BoxFuture;
use helve_core::Timestamp;
use helve_fetch::HeaderValue;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

use super::scopes::Scopes;

/// A token is renewed this long before it expires, or a tenth of its life.
const MARGIN_SECONDS: i64 = 60;

/// Keeps logins where only their owner can read them.
///
/// The key is the address of the MCP server, and not fit for the name of a file. The document is text that holds
/// tokens and says itself which issuer and which server they belong to; it is kept whole or not at all.
pub trait TokenStore: Send + Sync {
    /// What is kept under a key.
    ///
    /// # Errors
    /// A sentence that says why it cannot be read.
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, String>>;

    /// Keeps a document in place of the one before.
    ///
    /// # Errors
    /// A sentence that says why it cannot be kept.
    fn save<'a>(&'a self, key: &'a str, document: SecretString) -> BoxFuture<'a, Result<(), String>>;

    /// Forgets a document. It is no error if there is none.
    ///
    /// # Errors
    /// A sentence that says why it cannot be removed.
    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), String>>;
}

/// Keeps logins as long as the process lives.
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

/// A login: who gave it, to which client, for which server, and what it is good for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Login {
    pub(super) issuer: String,
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    pub(super) client: Client,
    /// Gone where the issuer no longer takes them; the registration is still good then.
    pub(super) tokens: Option<Tokens>,
    /// What was asked for. It grows, so that a token for one thing does not end another.
    pub(super) scopes: Scopes,
}

/// A client as an issuer knows it. What one issuer gave is never shown to another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    #[serde(default, serialize_with = "exposed", skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<SecretString>,
    pub(super) proof: Proof,
    pub(super) origin: Origin,
    /// Where browsers come back to, as it was registered.
    pub(super) redirect_uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret_expires: Option<Timestamp>,
}

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Origin {
    /// A person registered it. Its secret is not kept here but where they keep it.
    Given,
    /// Its name is the address of a document about it.
    Document,
    /// The issuer made it up when it was asked.
    Registered,
}

/// How a client proves itself where tokens are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Proof {
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "none")]
    None,
}

/// What an issuer gave.
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
    /// The header that shows the token to the server.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::try_from(format!("Bearer {}", self.access.expose_secret())).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Whether it is time for a new token.
    pub(super) fn is_old(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| {
            let life = expires.as_second().saturating_sub(self.issued.as_second());
            now.as_second() >= expires.as_second().saturating_sub(MARGIN_SECONDS.min(life / 10))
        })
    }
}

impl Login {
    /// Reads a document. What cannot be read is no login.
    pub(super) fn read(document: &SecretString) -> Option<Self> {
        serde_json::from_str(document.expose_secret()).ok()
    }

    /// Writes the document, without the secrets that are kept elsewhere.
    pub(super) fn write(&self) -> Option<SecretString> {
        let mut copy = self.clone();
        if copy.client.origin == Origin::Given {
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

    /// Everything in it that must not be seen.
    pub(super) fn secrets(&self) -> impl Iterator<Item = SecretString> {
        let tokens = self.tokens.iter().flat_map(|tokens| std::iter::once(&tokens.access).chain(&tokens.refresh));
        tokens.chain(&self.client.secret).cloned()
    }
}

#[expect(clippy::ref_option, reason = "serde hands it over like this")]
fn exposed<S: Serializer>(secret: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(SecretString::expose_secret).serialize(serializer)
}

fn always_exposed<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    secret.expose_secret().serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(origin: Origin) -> Login {
        let at = |second| Timestamp::from_second(second).expect("a time");
        Login {
            issuer: "https://login.example".into(),
            resource: "https://mcp.example".into(),
            token_endpoint: "https://login.example/token".into(),
            client: Client {
                id: "me".into(),
                secret: Some("canary-secret".to_owned().into()),
                proof: Proof::Basic,
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
        let document = login(Origin::Registered).write().expect("a document");
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
        let document = login(Origin::Given).write().expect("a document");
        assert!(!document.expose_secret().contains("canary-secret"));
        assert!(login(Origin::Registered).write().expect("a document").expose_secret().contains("canary-secret"));
        assert!(!format!("{:?}", login(Origin::Given)).contains("canary"));
    }

    #[test]
    fn a_token_is_old_shortly_before_its_end() {
        let tokens = login(Origin::Given).tokens.expect("tokens");
        let is_old = |second| tokens.is_old(Timestamp::from_second(second).expect("a time"));
        assert!(!is_old(1269) && is_old(1270) && is_old(2000));
        assert!(!Tokens { expires: None, ..tokens.clone() }.is_old(Timestamp::MAX));
        let header = tokens.header().expect("a header");
        assert!(header.is_sensitive() && header == "Bearer canary-access");
    }
}
