//! A JSON file in the state folder that several processes can read and change.

use std::marker::PhantomData;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::state::{StateError, StateFolder};

/// What to do if the content of a file cannot be deserialised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDamage {
    /// Return [`StateError::Damaged`] with this advice, and keep the file.
    Refuse(&'static str),
    /// Treat the file as empty, and overwrite it with the next change. For files that can be rebuilt.
    StartEmpty,
}

/// A JSON file in the state folder that contains a `T`. A missing file counts as `T::default()`.
#[derive(Debug, Clone)]
pub struct StateFile<T> {
    folder: StateFolder,
    name: &'static str,
    on_damage: OnDamage,
    content: PhantomData<fn() -> T>,
}

impl<T: Default + Serialize + DeserializeOwned> StateFile<T> {
    /// Creates a value for the file `name`. Does not open the file.
    #[must_use]
    pub fn new(folder: StateFolder, name: &'static str, on_damage: OnDamage) -> Self {
        Self { folder, name, on_damage, content: PhantomData }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path(self.name)
    }

    /// Reads the file without a lock, because writers replace the file atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, another user could have written it, or it is damaged. With [`OnDamage::StartEmpty`],
    /// never returns an error.
    pub fn load(&self) -> Result<T, StateError> {
        match (self.read(), self.on_damage) {
            (Err(_), OnDamage::StartEmpty) => Ok(T::default()),
            (result, _) => result,
        }
    }

    /// Locks the state folder, reads the file, changes its content with `change`, and replaces the file if the content has changed.
    ///
    /// # Errors
    /// Returns the errors of [`load`](Self::load), and an error if the file cannot be locked or written.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, StateError> {
        let _lock = self.folder.lock()?;
        let mut content = self.load()?;
        let before = self.write_text(&content)?;
        let result = change(&mut content);
        let after = self.write_text(&content)?;
        if after != before {
            self.folder.write(self.name, &after)?;
        }
        Ok(result)
    }

    fn read(&self) -> Result<T, StateError> {
        let Some(text) = self.folder.read(self.name)? else { return Ok(T::default()) };
        serde_json::from_str(&text).map_err(|error| {
            let advice = if let OnDamage::Refuse(advice) = self.on_damage { advice } else { "remove it" };
            // Report only the position: the parser's message may quote the content, which may be secret.
            StateError::Damaged { path: self.path().display().to_string(), line: error.line(), column: error.column(), advice }
        })
    }

    fn write_text(&self, content: &T) -> Result<String, StateError> {
        serde_json::to_string_pretty(content)
            .map_err(|error| StateError::Io { path: self.path().display().to_string(), error: error.into() })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Numbers = BTreeMap<String, u32>;

    fn file(folder: &tempfile::TempDir, on_damage: OnDamage) -> StateFile<Numbers> {
        StateFile::new(StateFolder::at(folder.path()), "numbers.json", on_damage)
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let file = file(&folder, OnDamage::StartEmpty);
                scope.spawn(move || file.change(|numbers| numbers.insert(thread.to_string(), thread)).expect("written"));
            }
        });
        assert_eq!(file(&folder, OnDamage::StartEmpty).load().expect("read").len(), 8);
    }

    #[test]
    fn a_change_that_changes_nothing_writes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = file(&folder, OnDamage::StartEmpty);
        assert_eq!(file.change(|numbers| numbers.remove("a")).expect("read"), None);
        assert!(!file.path().exists());
    }

    #[test]
    fn a_damaged_file_is_refused_without_its_content_or_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let strict = file(&folder, OnDamage::Refuse("remove it and log in again"));
        StateFolder::at(folder.path()).write("numbers.json", "{\n\"a\": \"s3cr3t\"}").expect("written");
        for error in [strict.load().expect_err("damaged"), strict.change(Numbers::clear).expect_err("damaged")] {
            let text = error.to_string();
            assert!(text.contains("line 2") && text.ends_with("remove it and log in again") && !text.contains("s3cr3t"), "{text}");
        }
        let lenient = file(&folder, OnDamage::StartEmpty);
        assert_eq!(lenient.load().expect("empty"), Numbers::new());
        lenient.change(|numbers| numbers.insert("a".into(), 1)).expect("replaced");
        assert_eq!(strict.load().expect("read"), Numbers::from([("a".to_owned(), 1)]));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_another_user_could_have_written_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let strict = file(&folder, OnDamage::Refuse("remove it"));
        strict.change(|numbers| numbers.insert("a".into(), 1)).expect("written");
        std::fs::set_permissions(strict.path(), std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("a mode");
        assert!(matches!(strict.load(), Err(StateError::Refused { .. })));
        assert!(matches!(strict.change(Numbers::clear), Err(StateError::Refused { .. })));
    }
}
