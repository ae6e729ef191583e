//! Trust in project folders: stores which capabilities of a folder a person has trusted, each with a digest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use helve_core::Digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::state::{StateError, StateFolder};
use crate::state_file::{OnDamage, StateFile};

const FILE: &str = "trust.json";

/// Something that a project folder can do after a person trusts it: a tool, a server or a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Name of the tool, server or setting.
    pub name: String,
    /// What the capability does: the command line, or the URL and the data that is sent to it.
    pub what: String,
    /// The file that defines the capability.
    pub file: String,
    /// Digest of everything that determines what the capability does: the definition, and the files that it names.
    pub digest: Digest,
    /// The fields of the definition without secrets, for display. Only the digest is compared.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
    /// The files that the capability depends on, such as scripts, with their digests; `None` if a file cannot be read.
    #[serde(default)]
    pub files: BTreeMap<String, Option<Digest>>,
    /// Descriptions of what the digest does not cover, for people.
    #[serde(default)]
    pub uncovered: Vec<String>,
    /// Whether the capability is a setting of the whole folder. Removing a setting also counts as a change, because the folder might do
    /// more without it.
    #[serde(default)]
    pub is_setting: bool,
}

impl Capability {
    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.file == other.file && self.digest == other.digest
    }
}

/// How a capability differs from the trusted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CapabilityChange {
    /// The capability is new.
    New,
    /// The definition of the capability, or a file that it names, has changed.
    Changed {
        /// The changed files, including the defining file if it has changed.
        files: Vec<String>,
        /// The fields of the definition that have changed.
        fields: Vec<FieldChange>,
    },
}

/// A field of a definition that has changed since a person trusted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// The name of the field.
    pub field: String,
    /// The trusted value; `None` if the field is new.
    pub before: Option<String>,
    /// The current value; `None` if the field was removed.
    pub now: Option<String>,
}

/// The state of trust in a project folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The folder contains nothing that needs trust.
    NotNeeded,
    /// A person trusts the current contents of the folder.
    Trusted,
    /// A person trusts the folder, but some tools or servers are new or have changed. Only those are disabled.
    Partly,
    /// A person trusted the folder, but its settings or all of its capabilities have changed since. All capabilities are disabled.
    Changed,
    /// No person has decided about the folder.
    Unknown,
}

impl Trust {
    /// Returns whether the folder's settings apply, and its trusted tools and servers are enabled.
    #[must_use]
    pub fn allows(self) -> bool {
        matches!(self, Self::NotNeeded | Self::Trusted | Self::Partly)
    }
}

/// The trust decisions in the user's state folder.
#[derive(Debug)]
pub struct TrustStore {
    file: StateFile<BTreeMap<String, TrustDecision>>,
    folders: BTreeMap<String, TrustDecision>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct TrustDecision {
    at: Timestamp,
    /// The trusted capabilities. Empty if an earlier version of Helve, which checked less, wrote the file; then the folder must be trusted
    /// again.
    #[serde(default)]
    capabilities: Vec<Capability>,
}

impl TrustDecision {
    /// Compares the trusted capabilities with the current ones. Settings are trusted only together, because a setting that was added or
    /// removed may loosen the others.
    fn trust(&self, now: &[Capability]) -> Trust {
        let known = |list: &[Capability], one: &Capability| list.iter().any(|other| other.is_same(one));
        let settings_hold = now.iter().filter(|one| one.is_setting).all(|one| known(&self.capabilities, one))
            && self.capabilities.iter().filter(|one| one.is_setting).all(|one| known(now, one));
        match now.iter().filter(|one| known(&self.capabilities, one)).count() {
            _ if !settings_hold => Trust::Changed,
            _ if now.is_empty() => Trust::NotNeeded,
            0 => Trust::Changed,
            agreed if agreed < now.len() => Trust::Partly,
            _ => Trust::Trusted,
        }
    }
}

impl TrustStore {
    /// Reads the trust decisions from the state folder.
    ///
    /// # Errors
    /// Returns an error if the state folder cannot be read or the file is damaged. Callers must then trust no folder.
    pub fn open(state: StateFolder) -> Result<Self, StateError> {
        let file = StateFile::new(state, FILE, OnDamage::Refuse("remove it and trust your folders again"));
        let folders = file.load()?;
        Ok(Self { file, folders })
    }

    /// Returns the path of the file with the trust decisions.
    #[must_use]
    pub fn file(state: &StateFolder) -> PathBuf {
        state.path(FILE)
    }

    /// Returns the state of trust in a folder with these current capabilities.
    #[must_use]
    pub fn of(&self, folder: &Path, capabilities: &[Capability]) -> Trust {
        match self.folders.get(&key(folder)) {
            Some(decision) => decision.trust(capabilities),
            None if capabilities.is_empty() => Trust::NotNeeded,
            None => Trust::Unknown,
        }
    }

    /// Returns how a capability differs from the trusted one, or `None` if both are the same.
    #[must_use]
    pub fn change(&self, folder: &Path, capability: &Capability) -> Option<CapabilityChange> {
        let before = self.folders.get(&key(folder)).map(|decision| decision.capabilities.as_slice()).unwrap_or_default();
        let Some(before) = before.iter().find(|one| one.name == capability.name && one.file == capability.file) else {
            return Some(CapabilityChange::New);
        };
        if before.is_same(capability) {
            return None;
        }
        let names = before.files.keys().chain(capability.files.keys());
        let mut files: Vec<String> = names.filter(|name| before.files.get(*name) != capability.files.get(*name)).cloned().collect();
        files.sort_unstable();
        files.dedup();
        let names = before.fields.keys().chain(capability.fields.keys().filter(|field| !before.fields.contains_key(*field)));
        let change = |field: &String| FieldChange {
            field: field.clone(),
            before: before.fields.get(field).cloned(),
            now: capability.fields.get(field).cloned(),
        };
        let fields: Vec<FieldChange> = names.map(change).filter(|change| change.before != change.now).collect();
        if files.is_empty() || before.what != capability.what || !fields.is_empty() {
            files.insert(0, capability.file.clone());
        }
        Some(CapabilityChange::Changed { files, fields })
    }

    /// Returns the trusted settings that no longer exist.
    #[must_use]
    pub fn missing(&self, folder: &Path, capabilities: &[Capability]) -> Vec<Capability> {
        let before = self.folders.get(&key(folder)).map(|decision| decision.capabilities.as_slice()).unwrap_or_default();
        let is_there = |one: &Capability| capabilities.iter().any(|other| other.name == one.name && other.file == one.file);
        before.iter().filter(|one| one.is_setting && !is_there(one)).cloned().collect()
    }

    /// Trusts a folder with exactly these capabilities.
    ///
    /// # Errors
    /// Returns an error if the decision cannot be written.
    pub fn trust(&mut self, folder: &Path, capabilities: &[Capability]) -> Result<(), StateError> {
        self.decide(folder, |_| capabilities.to_vec())
    }

    /// Trusts a folder with these capabilities in addition to those already trusted.
    ///
    /// # Errors
    /// Returns an error if the decision cannot be written.
    pub fn trust_more(&mut self, folder: &Path, capabilities: &[Capability]) -> Result<(), StateError> {
        let is_replaced = |one: &Capability| capabilities.iter().any(|other| other.name == one.name && other.file == one.file);
        self.decide(folder, |before| before.into_iter().filter(|one| !is_replaced(one)).chain(capabilities.iter().cloned()).collect())
    }

    /// Revokes the trust in a folder. Returns whether the folder was trusted.
    ///
    /// # Errors
    /// Returns an error if the decision cannot be written.
    pub fn revoke(&mut self, folder: &Path) -> Result<bool, StateError> {
        self.update(|folders| folders.remove(&key(folder)).is_some())
    }

    fn decide(&mut self, folder: &Path, agreed: impl FnOnce(Vec<Capability>) -> Vec<Capability>) -> Result<(), StateError> {
        self.update(|folders| {
            let before = folders.remove(&key(folder)).map(|decision| decision.capabilities).unwrap_or_default();
            folders.insert(key(folder), TrustDecision { at: Timestamp::now(), capabilities: agreed(before) });
        })
    }

    fn update<R>(&mut self, change: impl FnOnce(&mut BTreeMap<String, TrustDecision>) -> R) -> Result<R, StateError> {
        let (result, folders) = self.file.change(|folders| (change(folders), folders.clone()))?;
        self.folders = folders;
        Ok(result)
    }
}

fn key(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    match folder.to_str() {
        Some(name) => name.to_owned(),
        // Add a digest, because two paths that are not UTF-8 may look the same when displayed.
        None => format!("{} {}", Digest::of([folder.as_os_str().as_encoded_bytes()]), folder.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capability(name: &str, script: &[u8]) -> Capability {
        let digest = Digest::of([script]);
        let (what, file) = ("python3 x.py".into(), "tools/builtin/x.yaml".into());
        let files = BTreeMap::from([("x.py".to_owned(), Some(digest))]);
        let fields = BTreeMap::from([("text".to_owned(), String::from_utf8_lossy(script).into_owned())]);
        Capability { name: name.into(), what, file, digest, fields, files, uncovered: Vec::new(), is_setting: name == "rules" }
    }

    #[test]
    fn trust_is_for_what_was_shown() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = tempfile::tempdir().expect("a folder");
        let open = || TrustStore::open(StateFolder::at(home.path().join("state"))).expect("a store");
        let shown = [capability("a", b"1"), capability("b", b"2")];
        assert_eq!(open().of(folder.path(), &[]), Trust::NotNeeded);
        assert_eq!(open().of(folder.path(), &shown), Trust::Unknown);
        open().trust(folder.path(), &shown).expect("written");
        assert_eq!(open().of(folder.path(), &shown), Trust::Trusted, "and remembered");
        let reordered = [capability("b", b"2"), capability("a", b"1")];
        assert_eq!(open().of(folder.path(), &reordered), Trust::Trusted);
        assert_eq!(open().of(folder.path(), &[capability("a", b"1"), capability("b", b"3")]), Trust::Partly);
        assert_eq!(open().of(folder.path(), &[capability("a", b"3"), capability("b", b"3")]), Trust::Changed, "nothing of it is left");
        assert_eq!(open().of(folder.path(), &[capability("a", b"1"), capability("rules", b"1")]), Trust::Changed, "a new setting");
        assert_eq!(open().of(folder.path(), &shown[..1]), Trust::Trusted, "less is no more than was agreed to");
        assert_eq!(open().change(folder.path(), &shown[0]), None);
        assert_eq!(open().change(folder.path(), &capability("c", b"1")), Some(CapabilityChange::New));
        let fields = vec![FieldChange { field: "text".into(), before: Some("1".into()), now: Some("3".into()) }];
        let files = vec!["tools/builtin/x.yaml".into(), "x.py".into()];
        assert_eq!(open().change(folder.path(), &capability("a", b"3")), Some(CapabilityChange::Changed { files, fields }));
        open().trust_more(folder.path(), &[capability("c", b"1")]).expect("written");
        assert_eq!(open().of(folder.path(), &[capability("a", b"1"), capability("c", b"1")]), Trust::Trusted, "both are agreed to");
        assert!(open().revoke(folder.path()).expect("written"));
        assert_eq!(open().of(folder.path(), &shown), Trust::Unknown);
    }

    #[test]
    fn a_setting_that_is_gone_is_a_change() {
        let home = tempfile::tempdir().expect("a folder");
        let mut store = TrustStore::open(StateFolder::at(home.path())).expect("a store");
        let shown = [capability("a", b"1"), capability("rules", b"2")];
        store.trust(home.path(), &shown).expect("kept");
        assert_eq!(store.of(home.path(), &shown[..1]), Trust::Changed);
        assert_eq!(store.missing(home.path(), &shown[..1]), shown[1..]);
        assert_eq!(store.of(home.path(), &shown[1..]), Trust::Trusted);
    }

    #[cfg(unix)]
    #[test]
    fn names_that_look_the_same_are_different_folders() {
        use std::os::unix::ffi::OsStrExt;
        let home = tempfile::tempdir().expect("a folder");
        let mut store = TrustStore::open(StateFolder::at(home.path().join("state"))).expect("a store");
        let folder = |name: &[u8]| home.path().join(std::ffi::OsStr::from_bytes(name));
        store.trust(&folder(b"x\xff"), &[capability("a", b"1")]).expect("kept");
        assert_eq!(store.of(&folder(b"x\xff"), &[capability("a", b"1")]), Trust::Trusted);
        assert_eq!(store.of(&folder(b"x\xfe"), &[capability("a", b"1")]), Trust::Unknown);
    }

    /// An earlier version saw less of a folder, so what it trusted is asked about again.
    #[test]
    fn what_an_earlier_version_trusted_has_changed() {
        let home = tempfile::tempdir().expect("a folder");
        let text = format!(
            "{{\"{}\": {{\"digest\": \"{}\", \"at\": \"2026-01-01T00:00:00Z\"}}}}",
            key(home.path()),
            Digest::of([b"1".as_slice()])
        );
        std::fs::write(home.path().join(FILE), text).expect("a file");
        let store = TrustStore::open(StateFolder::at(home.path())).expect("a store");
        assert_eq!(store.of(home.path(), &[capability("a", b"1")]), Trust::Changed);
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
                        .trust(folder.path(), &[capability("a", b"1")])
                        .expect("kept");
                });
            }
        });
        let store = TrustStore::open(StateFolder::at(home.path())).expect("a store");
        assert!(folders.iter().all(|folder| store.of(folder.path(), &[capability("a", b"1")]) == Trust::Trusted));
    }

    #[test]
    fn a_damaged_file_trusts_nothing_and_says_so() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join(FILE), "{\"/\": tru").expect("a file");
        #[cfg(unix)]
        std::fs::set_permissions(home.path().join(FILE), std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
        let damaged = TrustStore::open(StateFolder::at(home.path())).expect_err("damaged").to_string();
        assert!(damaged.contains("remove it"), "{damaged}");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("state");
        TrustStore::open(StateFolder::at(&folder)).expect("a store").trust(home.path(), &[capability("a", b"1")]).expect("written");
        let mode = |path: &Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(FILE))), (0o700, 0o600));
    }
}
