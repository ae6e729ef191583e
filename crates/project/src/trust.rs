//! Whether a folder may run what it brings. A person decides, for exactly what they were shown.

use std::collections::BTreeMap;
use std::path::Path;

use helve_core::Digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::state::{StateError, StateFolder};

const FILE: &str = "trust.json";

/// Something in a folder that would run on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Runnable {
    /// The tool or server.
    pub name: String,
    /// What is started, as a person would type it.
    pub what: String,
    /// The file that says so.
    pub file: String,
    /// Everything that decides what happens: the command and the scripts it names.
    pub digest: Digest,
}

/// Whether a folder is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It brings nothing that would run.
    NotNeeded,
    /// A person trusts it as it is.
    Trusted,
    /// A person trusted it, and it has changed.
    Changed,
    /// Nobody has been asked.
    Unknown,
}

impl Trust {
    /// Whether the folder may do what it says.
    #[must_use]
    pub fn allows(self) -> bool {
        matches!(self, Self::NotNeeded | Self::Trusted)
    }
}

/// What people have decided, in their state folder.
#[derive(Debug)]
pub struct TrustStore {
    state: StateFolder,
    folders: BTreeMap<String, Decided>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Decided {
    digest: Digest,
    at: Timestamp,
}

impl TrustStore {
    /// Reads the decisions. A file that cannot be understood counts as none, so that nothing runs by mistake.
    ///
    /// # Errors
    /// Where the state folder cannot be read.
    pub fn open(state: StateFolder) -> Result<Self, StateError> {
        let mut store = Self { state, folders: BTreeMap::new() };
        store.read()?;
        Ok(store)
    }

    /// Whether a folder is trusted with what it would run now.
    #[must_use]
    pub fn of(&self, folder: &Path, runnables: &[Runnable]) -> Trust {
        match self.folders.get(&key(folder)) {
            _ if runnables.is_empty() => Trust::NotNeeded,
            Some(decided) if decided.digest == digest(runnables) => Trust::Trusted,
            Some(_) => Trust::Changed,
            None => Trust::Unknown,
        }
    }

    /// Trusts a folder with exactly this.
    ///
    /// # Errors
    /// Where the decision cannot be written.
    pub fn trust(&mut self, folder: &Path, runnables: &[Runnable]) -> Result<(), StateError> {
        let _lock = self.state.lock()?;
        self.read()?;
        self.folders.insert(key(folder), Decided { digest: digest(runnables), at: Timestamp::now() });
        self.save()
    }

    /// Trusts a folder no longer; says whether it was trusted.
    ///
    /// # Errors
    /// Where the decision cannot be written.
    pub fn revoke(&mut self, folder: &Path) -> Result<bool, StateError> {
        let _lock = self.state.lock()?;
        self.read()?;
        let known = self.folders.remove(&key(folder)).is_some();
        if known {
            self.save()?;
        }
        Ok(known)
    }

    fn read(&mut self) -> Result<(), StateError> {
        self.folders = self.state.read(FILE)?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(())
    }

    fn save(&self) -> Result<(), StateError> {
        self.state.write(FILE, &serde_json::to_string_pretty(&self.folders).unwrap_or_default())
    }
}

fn key(folder: &Path) -> String {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).to_string_lossy().into_owned()
}

fn digest(runnables: &[Runnable]) -> Digest {
    let mut parts: Vec<_> = runnables.iter().map(|runnable| (runnable.name.as_bytes(), runnable.digest)).collect();
    parts.sort_unstable();
    Digest::of(parts.iter().flat_map(|(name, digest)| [*name, digest.as_bytes().as_slice()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runnable(name: &str, script: &[u8]) -> Runnable {
        Runnable { name: name.into(), what: "python3 x.py".into(), file: "tools/builtin/x.yaml".into(), digest: Digest::of([script]) }
    }

    #[test]
    fn trust_is_for_what_was_shown() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = tempfile::tempdir().expect("a folder");
        let open = || TrustStore::open(StateFolder::at(home.path().join("state"))).expect("a store");
        let shown = [runnable("a", b"1"), runnable("b", b"2")];
        assert_eq!(open().of(folder.path(), &[]), Trust::NotNeeded);
        assert_eq!(open().of(folder.path(), &shown), Trust::Unknown);
        open().trust(folder.path(), &shown).expect("written");
        assert_eq!(open().of(folder.path(), &shown), Trust::Trusted, "and remembered");
        let reordered = [runnable("b", b"2"), runnable("a", b"1")];
        assert_eq!(open().of(folder.path(), &reordered), Trust::Trusted);
        assert_eq!(open().of(folder.path(), &[runnable("a", b"1"), runnable("b", b"3")]), Trust::Changed);
        assert_eq!(open().of(folder.path(), &shown[..1]), Trust::Changed);
        assert!(open().revoke(folder.path()).expect("written"));
        assert_eq!(open().of(folder.path(), &shown), Trust::Unknown);
    }

    #[test]
    fn decisions_made_at_once_are_all_kept() {
        let home = tempfile::tempdir().expect("a folder");
        let folders: Vec<_> = (0..8).map(|_| tempfile::tempdir().expect("a folder")).collect();
        std::thread::scope(|scope| {
            for folder in &folders {
                scope.spawn(|| {
                    TrustStore::open(StateFolder::at(home.path()))
                        .expect("a store")
                        .trust(folder.path(), &[runnable("a", b"1")])
                        .expect("kept");
                });
            }
        });
        let store = TrustStore::open(StateFolder::at(home.path())).expect("a store");
        assert!(folders.iter().all(|folder| store.of(folder.path(), &[runnable("a", b"1")]) == Trust::Trusted));
    }

    #[test]
    fn a_broken_file_trusts_nobody() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join(FILE), "{\"/\": tru").expect("a file");
        let store = TrustStore::open(StateFolder::at(home.path())).expect("a store");
        assert_eq!(store.of(Path::new("/"), &[runnable("a", b"1")]), Trust::Unknown);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("state");
        TrustStore::open(StateFolder::at(&folder)).expect("a store").trust(home.path(), &[runnable("a", b"1")]).expect("written");
        let mode = |path: &Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(FILE))), (0o700, 0o600));
    }
}
