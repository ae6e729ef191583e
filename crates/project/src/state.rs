//! The user's own folder for what a project must not decide: trust, pins, grants. Only its owner can read it, and what somebody else
//! could have written in it is not believed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use helve_core::Digest;
use helve_files::FileError;
use serde_json::json;

/// So large a file of the state may be.
const LARGEST: u64 = 16 << 20;
/// Holds one folder for each project.
const PROJECTS: &str = "projects";
/// Says, in a project's folder of the state, which project it belongs to.
const FOLDER: &str = "folder.json";
/// So much of a digest names a project's folder.
const KEY: usize = 32;

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
    /// Somebody else may have prepared or changed a file or folder of it.
    #[error("Helve's state cannot be trusted: {path} {reason}")]
    Refused {
        /// The file or folder.
        path: String,
        /// What is wrong with it, and what to do.
        reason: String,
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

    /// The folder in which a project's own state lies, outside of the project. It is created where it is missing.
    ///
    /// It is found by the project's path, so that nothing is lost where the numbers of files change, as on network file systems. A project
    /// that was moved begins anew; one that takes the place of another finds what that one left, and what waits there runs only as far
    /// as it is trusted or approved.
    ///
    /// # Errors
    /// Where the project's folder is not there, or the state folder cannot be used.
    pub fn folder_of(&self, project: &Path) -> Result<PathBuf, StateError> {
        let project = project.canonicalize().map_err(|error| refused(project, error))?;
        let mut key = Digest::of([project.as_os_str().as_encoded_bytes()]).to_string();
        key.truncate(KEY);
        self.made()?;
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

    /// Keeps others from changing the state until what is given back is dropped.
    ///
    /// # Errors
    /// Where the system refuses, or others may write to the folder.
    pub fn lock(&self) -> Result<File, StateError> {
        self.made()?;
        let path = self.0.join("lock");
        let file = helve_files::open(&path)?;
        file.lock().map_err(|error| refused(&path, error))?;
        Ok(file)
    }

    /// Reads a file; nothing where it is not there.
    ///
    /// # Errors
    /// Where it is there and cannot be read, or others may write to it or to the folder.
    pub fn read(&self, name: &str) -> Result<Option<String>, StateError> {
        if !self.is_there()? {
            return Ok(None);
        }
        Ok(helve_files::read(&self.0.join(name), LARGEST)?)
    }

    /// Writes a file whole or not at all, readable only by its owner.
    ///
    /// # Errors
    /// Where the system refuses, or others may write to the folder.
    pub fn write(&self, name: &str, text: &str) -> Result<(), StateError> {
        self.made()?;
        replace(&self.0, name, text)
    }

    /// Makes the folder, or checks the one that is there.
    fn made(&self) -> Result<(), StateError> {
        if !self.is_there()? {
            helve_files::create_folder(&self.0)?;
            self.is_there()?;
        }
        Ok(())
    }

    /// Whether there is a folder, which belongs to the user and to which nobody else may write. The user may have put it elsewhere by a
    /// symbolic link: what counts is where it is.
    fn is_there(&self) -> Result<bool, StateError> {
        match self.0.canonicalize() {
            Ok(folder) => Ok(helve_files::own_folder(&folder)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(refused(&self.0, error)),
        }
    }
}

/// Puts a file in the place of another, or none.
fn replace(folder: &Path, name: &str, text: &str) -> Result<(), StateError> {
    /// Tells files apart that one process writes at once.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let path = folder.join(name);
    let temporary = folder.join(format!(".{name}.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    // An earlier process with the same number may have left it behind.
    let _ = fs::remove_file(&temporary);
    let mut file = helve_files::create(&temporary)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, &path));
    written.map_err(|error| refused(&path, error))
}

fn refused(path: &Path, error: io::Error) -> StateError {
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
    fn a_folder_to_which_others_may_write_is_refused() {
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
    fn a_file_that_somebody_else_could_have_written_is_refused() {
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
        File::options().write(true).open(&file).and_then(|file| file.set_len(LARGEST + 1)).expect("a large file");
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
