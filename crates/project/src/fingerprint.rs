//! Detects changes in a project by file name, size and modification time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::discover::{CONFIGS, FOLDERS};

/// Names, sizes and modification times of a project's files. If two fingerprints are equal, the files have not changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fingerprint {
    files: Vec<(String, u64, Option<SystemTime>)>,
}

impl Fingerprint {
    /// Creates the fingerprint of a list of files.
    #[must_use]
    pub fn of_files(files: &[PathBuf]) -> Self {
        let mut fingerprint = Self::default();
        for file in files {
            fingerprint.add(file);
        }
        fingerprint
    }

    /// Creates the fingerprint of a project: of its settings file, and of all files in the folders that Helve reads.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        let root = &root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut fingerprint = Self::default();
        for file in CONFIGS.into_iter().map(|name| root.join(name)) {
            fingerprint.add(&file);
        }
        for (_, folder) in FOLDERS {
            let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
            for entry in entries.flatten() {
                fingerprint.add(&entry.path());
            }
        }
        fingerprint.files.sort();
        fingerprint
    }

    fn add(&mut self, path: &Path) {
        if let Ok(metadata) = fs::metadata(path) {
            self.files.push((path.to_string_lossy().into_owned(), metadata.len(), metadata.modified().ok()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_shows() {
        let folder = tempfile::tempdir().expect("a folder");
        let tools = folder.path().join("tools/builtin");
        fs::create_dir_all(&tools).expect("a folder");
        let empty = Fingerprint::of(folder.path());
        fs::write(tools.join("a.yaml"), "x").expect("a file");
        let one = Fingerprint::of(folder.path());
        assert_ne!(empty, one);
        assert_eq!(one, Fingerprint::of(folder.path()));
        fs::write(tools.join("a.yaml"), "xy").expect("a file");
        assert_ne!(one, Fingerprint::of(folder.path()));
        fs::write(folder.path().join("helve.yaml"), "").expect("a file");
        assert_eq!(Fingerprint::of(folder.path()).files.len(), 2);
        let script = folder.path().join("script.py");
        let before = Fingerprint::of_files(std::slice::from_ref(&script));
        fs::write(&script, "print(1)").expect("a file");
        assert_ne!(before, Fingerprint::of_files(&[script]));
    }
}
