//! What people have agreed to, in the user's state folder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use helve_core::Digest;
use helve_mcp::{PinStore, Pins};
use helve_project::{StateError, StateFolder};
use serde::{Deserialize, Serialize};

const PINS: &str = "mcp-pins.json";

/// The file of it.
pub(super) struct PinFile(Option<StateFolder>);

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    servers: BTreeMap<Digest, Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// For people who look into the file.
    pub(super) name: String,
    pub(super) place: String,
    #[serde(flatten)]
    pub(super) pins: Pins,
}

impl PinFile {
    pub(super) fn of(state: Option<StateFolder>) -> Self {
        Self(state)
    }

    fn path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|state| state.path(PINS))
    }

    fn read(&self) -> Result<Written, String> {
        let Some(state) = &self.0 else { return Err("there is no place for what was agreed to: set HELVE_STATE_DIR or HOME".to_owned()) };
        match state.read(PINS).map_err(|error| error.to_string())? {
            None => Ok(Written::default()),
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                let path = state.path(PINS).display().to_string();
                format!("{path} is damaged ({error}); remove it and agree to the servers again")
            }),
        }
    }

    /// Agrees to the tools of a server.
    pub(super) fn keep(&self, server: Digest, kept: Kept) -> Result<(), StateError> {
        self.change(|servers| drop(servers.insert(server, kept)))
    }

    /// Nobody has agreed to a server any more.
    pub(super) fn forget(&self, server: &Digest) -> Result<(), StateError> {
        self.change(|servers| drop(servers.remove(server)))
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<Digest, Kept>)) -> Result<(), StateError> {
        let Some(state) = &self.0 else { return Err(StateError::Nowhere) };
        let _lock = state.lock()?;
        // What is damaged would be lost for good; nobody is asked to agree to it unread.
        let mut written = self.read().map_err(|error| StateError::Io { path: PINS.to_owned(), error: std::io::Error::other(error) })?;
        change(&mut written.servers);
        state.write(PINS, &serde_json::to_string_pretty(&written).unwrap_or_default())
    }
}

impl PinStore for PinFile {
    fn pins(&self, server: &Digest) -> Result<Option<Pins>, String> {
        Ok(self.read()?.servers.remove(server).map(|kept| kept.pins))
    }

    fn stamp(&self) -> u64 {
        let facts = self.path().and_then(|path| std::fs::metadata(path).ok());
        facts.map_or(0, |facts| {
            let time = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
            u64::try_from(time.as_nanos() & u128::from(u64::MAX)).unwrap_or_default() ^ facts.len()
        })
    }
}
