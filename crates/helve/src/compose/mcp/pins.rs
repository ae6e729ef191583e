//! Stores the approved (pinned) tool definitions of MCP servers in the user's state folder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use helve_core::Digest;
use helve_mcp::{PinStore, Pins};
use helve_project::{StateError, StateFolder};
use serde::{Deserialize, Serialize};

const PINS: &str = "mcp-pins.json";

/// The file with the approved (pinned) tool definitions of MCP servers.
pub(super) struct PinFile(Option<StateFolder>);

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinDocument {
    servers: BTreeMap<Digest, PinnedServer>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PinnedServer {
    /// The name of the server, for people who read the file.
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

    fn read(&self) -> Result<PinDocument, String> {
        let Some(state) = &self.0 else {
            return Err("there is no state folder for the approved definitions: set HELVE_STATE_DIR or HOME".to_owned());
        };
        match state.read(PINS).map_err(|error| error.to_string())? {
            None => Ok(PinDocument::default()),
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                let path = state.path(PINS).display().to_string();
                format!("{path} is damaged ({error}); remove it and approve the servers again")
            }),
        }
    }

    /// Stores the approved tool definitions of a server.
    pub(super) fn approve(&self, server: Digest, approved: PinnedServer) -> Result<(), StateError> {
        self.change(|servers| drop(servers.insert(server, approved)))
    }

    /// Removes the approved tool definitions of a server.
    pub(super) fn forget(&self, server: &Digest) -> Result<(), StateError> {
        self.change(|servers| drop(servers.remove(server)))
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<Digest, PinnedServer>)) -> Result<(), StateError> {
        let Some(state) = &self.0 else { return Err(StateError::Nowhere) };
        let _lock = state.lock()?;
        // A damaged file is not overwritten: its contents would be lost.
        let mut document = self.read().map_err(|error| StateError::Io { path: PINS.to_owned(), error: std::io::Error::other(error) })?;
        change(&mut document.servers);
        state.write(PINS, &serde_json::to_string_pretty(&document).unwrap_or_default())
    }
}

impl PinStore for PinFile {
    fn pins(&self, server: &Digest) -> Result<Option<Pins>, String> {
        Ok(self.read()?.servers.remove(server).map(|server| server.pins))
    }

    fn stamp(&self) -> u64 {
        let metadata = self.path().and_then(|path| std::fs::metadata(path).ok());
        metadata.map_or(0, |metadata| {
            let time = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
            u64::try_from(time.as_nanos() & u128::from(u64::MAX)).unwrap_or_default() ^ metadata.len()
        })
    }
}
