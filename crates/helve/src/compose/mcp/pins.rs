//! Stores the approved (pinned) tool definitions of MCP servers in the user's state folder.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use helve_core::Digest;
use helve_mcp::{PinStore, Pins};
use helve_project::{OnDamage, StateError, StateFile, StateFolder};
use serde::{Deserialize, Serialize};

const PINS: &str = "mcp-pins.json";

/// The file with the approved (pinned) tool definitions of MCP servers.
pub(super) struct PinFile(Option<StateFile<PinDocument>>);

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
        // A damaged file is not overwritten: its contents would be lost.
        Self(state.map(|state| StateFile::new(state, PINS, OnDamage::Refuse("remove it and approve the servers again"))))
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
        self.0.as_ref().ok_or(StateError::Nowhere)?.change(|document| change(&mut document.servers))
    }
}

impl PinStore for PinFile {
    fn pins(&self, server: &Digest) -> Result<Option<Pins>, String> {
        let nowhere = "there is no state folder for the approved definitions: set HELVE_STATE_DIR or HOME";
        let mut document = self.0.as_ref().ok_or(nowhere)?.load().map_err(|error| error.to_string())?;
        Ok(document.servers.remove(server).map(|server| server.pins))
    }

    fn stamp(&self) -> u64 {
        let metadata = self.0.as_ref().and_then(|file| std::fs::metadata(file.path()).ok());
        metadata.map_or(0, |metadata| {
            let time = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
            u64::try_from(time.as_nanos() & u128::from(u64::MAX)).unwrap_or_default() ^ metadata.len()
        })
    }
}
