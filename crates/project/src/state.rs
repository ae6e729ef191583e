//! The user's state folder, for decisions that a project must not make itself: trust, pins, grants. Only its owner can read it. Helve
//! rejects files that another user could have written.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use helve_core::Digest;
use helve_files::FileError;
use serde_json::json;

/// Maximum size of a state file, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The folder in the state folder that contains one folder for each project.
const PROJECTS: &str = "projects";
/// The file in a project's state folder that records the path of the project.
const FOLDER: &str = "folder.json";
/// Number of digest characters in the name of a project's state folder.
const KEY_LENGTH: usize = 32;

/// Why the state folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Neither `HELVE_STATE_DIR` nor a home folder is set.
    #[error("no state folder: set HELVE_STATE_DIR or HOME")]
    Nowhere,
    /// A file or folder cannot be read or written.
    #[error("cannot use Helve's state folder: {path}: {error}")]
    Io {
        /// The path of the file or folder.
        path: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Another user could have created or changed a file or folder.
    #[error("Helve's state folder is not safe to use: {path} {reason}")]
    Refused {
        /// The path of the file or folder.
        path: String,
        /// What is wrong with the file or folder, and how to fix it.
        reason: String,
    },
    /// A state file is not valid.
    #[error("Helve's state file {path} is damaged (line {line}, column {column}); {advice}")]
    Damaged {
        /// The path of the file.
        path: String,
        /// The line of the first error.
        line: usize,
        /// The column of the first error.
        column: usize,
        /// What the user can do.
        advice: &'static str,
    },
}

impl From<FileError> for StateError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { path, error } => Self::Io { path, error },
            FileError::Refused { path, reason } => Self::Refused { path, reason },
            other => Self::Refused { path: String::new(), reason: other.to_string() },
        }
    }
}

/// The user's state folder.
#[derive(Debug, Clone)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// Returns the state folder of the current user: `HELVE_STATE_DIR`, else `helve` in the XDG state folder.
    ///
    /// # Errors
    /// Returns an error if none of `HELVE_STATE_DIR`, `XDG_STATE_HOME` and `HOME` is an absolute path.
    pub fn of_user() -> Result<Self, StateError> {
        // A relative path would depend on the working directory, which may belong to another user.
        let set = |name: &str| helve_core::environment::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = set("HELVE_STATE_DIR")
            .or_else(|| set("XDG_STATE_HOME").map(|state| state.join("helve")))
            .or_else(|| set("HOME").map(|home| home.join(".local/state/helve")));
        folder.map(Self).ok_or(StateError::Nowhere)
    }

    /// Uses `folder` as the state folder.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Returns the path of a file in the state folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the folder for the state of a project, which is outside the project. Creates the folder if it is missing.
    ///
    /// The name of the folder is a digest of the project's path. A project that is moved starts with an empty state. A project at the path
    /// of an earlier one gets the state of that project; pending work in this state still runs only if it is trusted or approved.
    ///
    /// # Errors
    /// Returns an error if the project folder does not exist, or the state folder cannot be used.
    pub fn folder_of(&self, project: &Path) -> Result<PathBuf, StateError> {
        let project = project.canonicalize().map_err(|error| io_error(project, error))?;
        let mut key = Digest::of([project.as_os_str().as_encoded_bytes()]).to_string();
        key.truncate(KEY_LENGTH);
        self.ensure()?;
        let projects = self.0.join(PROJECTS);
        let folder = projects.join(key);
        for folder in [&projects, &folder] {
            helve_files::create_folder(folder)?;
            helve_files::own_folder(folder)?;
        }
        if !folder.join(FOLDER).exists() {
            replace(&folder, FOLDER, &json!({"path": project.to_string_lossy()}).to_string())?;
        }
        Ok(folder)
    }

    /// Locks the state folder until the returned file is dropped. Waits if another writer holds the lock.
    ///
    /// # Errors
    /// Returns an error if an I/O operation fails, or other users may write to the folder.
    pub fn lock(&self) -> Result<File, StateError> {
        self.ensure()?;
        let path = self.0.join("lock");
        let file = helve_files::open(&path)?;
        file.lock().map_err(|error| io_error(&path, error))?;
        Ok(file)
    }

    /// Reads a file in the state folder. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Returns an error if the file exists and cannot be read, or other users may write to the file or the folder.
    pub fn read(&self, name: &str) -> Result<Option<String>, StateError> {
        if !self.exists()? {
            return Ok(None);
        }
        Ok(helve_files::read(&self.0.join(name), MAX_FILE_BYTES)?)
    }

    /// Replaces a file in the state folder atomically. Only its owner can read the file.
    ///
    /// # Errors
    /// Returns an error if an I/O operation fails, or other users may write to the folder.
    pub fn write(&self, name: &str, text: &str) -> Result<(), StateError> {
        self.ensure()?;
        replace(&self.0, name, text)
    }

    /// Creates the state folder, or checks the existing one.
    fn ensure(&self) -> Result<(), StateError> {
        if !self.exists()? {
            helve_files::create_folder(&self.0)?;
            self.exists()?;
        }
        Ok(())
    }

    /// Returns whether the state folder exists. Fails if the folder belongs to another user, or other users may write to it. If the path
    /// is a symbolic link, checks its target.
    fn exists(&self) -> Result<bool, StateError> {
        match self.0.canonicalize() {
            Ok(folder) => Ok(helve_files::own_folder(&folder)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(io_error(&self.0, error)),
        }
    }
}

/// Replaces a file atomically, with a temporary file that is renamed.
fn replace(folder: &Path, name: &str, text: &str) -> Result<(), StateError> {
    /// A counter for the names of temporary files, so that concurrent writes in one process do not conflict.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let path = folder.join(name);
    let temporary = folder.join(format!(".{name}.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    // An earlier process with the same id may have left the temporary file.
    let _ = fs::remove_file(&temporary);
    let mut file = helve_files::create(&temporary)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, &path));
    written.map_err(|error| io_error(&path, error))
}

fn io_error(path: &Path, error: io::Error) -> StateError {
    StateError::Io { path: path.display().to_string(), error }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("metadata").permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permissions");
    }

    /// A state folder that holds one file.
    fn state() -> (tempfile::TempDir, StateFolder) {
        let home = tempfile::tempdir().expect("a folder");
        let state = StateFolder::at(home.path().join("state"));
        state.write("a.json", "{}").expect("written");
        (home, state)
    }

    fn reason(result: Result<Option<String>, StateError>) -> String {
        match result {
            Err(error @ StateError::Refused { .. }) => error.to_string(),
            other => panic!("it is believed: {other:?}"),
        }
    }

    #[test]
    fn a_folder_to_which_others_may_write_is_io_error() {
        let (_home, state) = state();
        for wide in [0o777, 0o770, 0o702] {
            set_mode(&state.0, wide);
            let reason = reason(state.read("a.json"));
            assert!(reason.contains("chmod 700") && reason.contains(&*state.0.to_string_lossy()), "{reason}");
            assert!(state.write("a.json", "[]").is_err() && state.lock().is_err() && state.folder_of(&state.0).is_err());
        }
        set_mode(&state.0, 0o755);
        assert_eq!(state.read("a.json").expect("read").as_deref(), Some("{}"));
        assert_eq!(mode(&state.0), 0o700, "others could read it");
    }

    #[test]
    fn a_file_that_somebody_else_could_have_written_is_io_error() {
        let (home, state) = state();
        let file = state.path("a.json");
        set_mode(&file, 0o660);
        assert!(reason(state.read("a.json")).contains("chmod 600"));
        set_mode(&file, 0o600);
        fs::hard_link(&file, home.path().join("other")).expect("a link");
        assert!(reason(state.read("a.json")).contains("hard links"));
        fs::remove_file(&file).expect("removed");
        symlink(home.path().join("other"), &file).expect("a link");
        assert!(reason(state.read("a.json")).contains("symbolic link"));
        state.write("a.json", "[]").expect("the link is replaced, not followed");
        assert_eq!(fs::read_to_string(home.path().join("other")).expect("read"), "{}");
        File::options().write(true).open(&file).and_then(|file| file.set_len(MAX_FILE_BYTES + 1)).expect("a large file");
        assert!(reason(state.read("a.json")).contains("larger"));
        fs::remove_file(&file).expect("removed");
        fs::create_dir(&file).expect("a folder");
        assert!(reason(state.read("a.json")).contains("regular"));
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        let (_home, state) = state();
        for path in [state.path("a.json"), state.0.clone()] {
            if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
                return helve_testkit::skip("what_belongs_to_another_user_is_refused", "only root can change the owner of a file");
            }
            assert!(reason(state.read("a.json")).contains("another user"), "{}", path.display());
        }
    }

    #[test]
    fn a_project_has_its_own_folder_in_the_state() {
        let (home, state) = state();
        let [one, two] = ["one", "two"].map(|name| home.path().join(name));
        fs::create_dir(&one).expect("a folder");
        symlink(&one, &two).expect("a link");
        let folder = state.folder_of(&one).expect("a folder");
        assert_eq!(state.folder_of(&two).expect("a folder"), folder, "it is the same project");
        assert!(folder.starts_with(state.path(PROJECTS)));
        assert_eq!((mode(&folder), mode(&folder.join(FOLDER)), mode(&state.path(PROJECTS))), (0o700, 0o600, 0o700));
        let said = fs::read_to_string(folder.join(FOLDER)).expect("a file");
        assert!(said.contains(&*one.canonicalize().expect("a path").to_string_lossy()), "{said}");
        fs::remove_file(&two).expect("removed");
        fs::create_dir(&two).expect("a folder");
        assert_ne!(state.folder_of(&two).expect("a folder"), folder);
        fs::remove_dir_all(&folder).expect("removed");
        symlink(home.path(), &folder).expect("a link");
        assert!(matches!(state.folder_of(&one), Err(StateError::Refused { .. })), "a link is not followed");
        assert!(matches!(state.folder_of(&home.path().join("none")), Err(StateError::Io { .. })));
    }
}
