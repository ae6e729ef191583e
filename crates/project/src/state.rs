//! The user's own folder for what a project must not decide: trust, pins, grants. Only its owner can read it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why the state folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Nothing says where it is.
    #[error("there is no place for Helve's state: set HELVE_STATE_DIR or HOME")]
    Nowhere,
    /// The system refuses.
    #[error("Helve's state in {path} cannot be used: {error}")]
    Io {
        /// The file or folder.
        path: String,
        /// Why.
        error: io::Error,
    },
}

/// The user's own folder.
#[derive(Debug, Clone)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// The folder of the user who runs this: `HELVE_STATE_DIR`, else `helve` in the XDG state folder.
    ///
    /// # Errors
    /// Where the environment says nothing about a home.
    pub fn of_user() -> Result<Self, StateError> {
        // A relative path would lie in whatever folder one stands in, which may be a stranger's.
        let set = |name: &str| helve_core::environment::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = set("HELVE_STATE_DIR")
            .or_else(|| set("XDG_STATE_HOME").map(|state| state.join("helve")))
            .or_else(|| set("HOME").map(|home| home.join(".local/state/helve")));
        folder.map(Self).ok_or(StateError::Nowhere)
    }

    /// A folder of your choice.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Where a file of this name lies.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Keeps others from changing the state until what is given back is dropped.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn lock(&self) -> Result<fs::File, StateError> {
        let path = self.0.join("lock");
        let attempt = || {
            create_private(&self.0)?;
            let file = open_private(&path)?;
            file.lock()?;
            Ok(file)
        };
        attempt().map_err(|error| refused(&path, error))
    }

    /// Reads a file; nothing where it is not there.
    ///
    /// # Errors
    /// Where it is there and cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<String>, StateError> {
        let path = self.0.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused(&path, error)),
        }
    }

    /// Writes a file whole or not at all, readable only by its owner.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn write(&self, name: &str, text: &str) -> Result<(), StateError> {
        let path = self.0.join(name);
        let attempt = || {
            create_private(&self.0)?;
            let temporary = self.0.join(format!(".{name}.{}", std::process::id()));
            let mut file = open_private(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &path)
        };
        attempt().map_err(|error| refused(&path, error))
    }
}

fn refused(path: &Path, error: io::Error) -> StateError {
    StateError::Io { path: path.display().to_string(), error }
}

#[cfg(unix)]
fn create_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(unix)]
fn open_private(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(not(unix))]
fn open_private(path: &Path) -> io::Result<fs::File> {
    fs::File::create(path)
}
