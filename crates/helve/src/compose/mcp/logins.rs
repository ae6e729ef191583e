//! Stores the logins to MCP servers in the user's state folder, in one file that only its owner can read.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::Digest;
use helve_mcp::login::{MemoryStore, TokenStore};
use helve_project::{OnDamage, StateFile, StateFolder};
use secrecy::{ExposeSecret, SecretString};

const LOGINS: &str = "mcp-logins.json";

/// Returns the store of logins: a file in the state folder, or memory if there is no state folder.
pub(super) fn logins(state: Option<&StateFolder>) -> Arc<dyn TokenStore> {
    match state {
        Some(state) => Arc::new(LoginFile::new(state.clone())),
        None => Arc::new(MemoryStore::default()),
    }
}

struct LoginFile(StateFile<BTreeMap<Digest, String>>);

impl LoginFile {
    fn new(state: StateFolder) -> Self {
        Self(StateFile::new(state, LOGINS, OnDamage::Refuse("remove it and log in again")))
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<Digest, String>)) -> Result<(), String> {
        self.0.change(change).map_err(|error| error.to_string())
    }
}

fn name_of(key: &str) -> Digest {
    Digest::of([key.as_bytes()])
}

impl TokenStore for LoginFile {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, String>> {
        Box::pin(async move { Ok(self.0.load().map_err(|error| error.to_string())?.remove(&name_of(key)).map(SecretString::from)) })
    }

    fn save<'a>(&'a self, key: &'a str, document: SecretString) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.change(|logins| drop(logins.insert(name_of(key), document.expose_secret().to_owned()))) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.change(|logins| drop(logins.remove(&name_of(key)))) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn logins_are_kept_apart_and_only_for_their_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = logins(Some(&StateFolder::at(folder.path())));
        for (key, document) in [("https://a/mcp", "one"), ("https://b/mcp", "two")] {
            store.save(key, document.to_owned().into()).await.expect("kept");
        }
        let load = |key: &'static str| {
            let store = store.clone();
            async move { store.load(key).await.map(|found| found.map(|found| found.expose_secret().to_owned())) }
        };
        assert_eq!(load("https://a/mcp").await, Ok(Some("one".to_owned())));
        store.remove("https://a/mcp").await.expect("removed");
        assert_eq!((load("https://a/mcp").await, load("https://b/mcp").await), (Ok(None), Ok(Some("two".to_owned()))));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(folder.path().join(LOGINS)).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::write(folder.path().join(LOGINS), "secret-token").expect("a file");
        let damaged = load("https://b/mcp").await.expect_err("damaged");
        assert!(damaged.contains("damaged") && !damaged.contains("secret-token"), "{damaged}");
    }
}
