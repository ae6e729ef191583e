//! Creates and checks the file of a store and the files beside it. They are private to their owner from the start, and never opened
//! through a symbolic link.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use helve_core::StoreError;
use helve_files::FileError;
use parking_lot::Mutex;

/// Suffixes of the files beside the store. SQLite creates its own files with the permissions of the store.
const BESIDE: [&str; 4] = ["-wal", "-shm", "-journal", LOCK];
/// Suffix of the lock file. The process that holds its lock claims tasks.
const LOCK: &str = "-lock";

/// A lock that is held while a file is created. Closing a file releases all locks that the process has on it, so no other thread may
/// open the file in the meantime.
static CREATING: Mutex<()> = Mutex::new(());

/// Checks or creates the file of a store, and returns its real path. The folder may be a symbolic link; the file must not be one.
pub(super) fn prepare(file: &Path) -> Result<PathBuf, StoreError> {
    let name = file.file_name().ok_or_else(|| StoreError::Unavailable(format!("{} does not name a file", file.display())))?;
    let file = existing_folder(file)?.join(name);
    for ending in BESIDE {
        helve_files::check_file(&beside(&file, ending)).map_err(refused)?;
    }
    let _creating = CREATING.lock();
    if !helve_files::check_file(&file).map_err(refused)? {
        create(&file)?;
    }
    Ok(file)
}

/// Removes the permissions of other users from the store and the files beside it. An earlier version of Helve, or copying the file, may
/// have left such permissions.
pub(super) fn tighten(file: &Path) -> Result<(), StoreError> {
    helve_files::tighten_file(file).map_err(refused)?;
    BESIDE.iter().try_for_each(|ending| helve_files::tighten_file(&beside(file, ending)).map_err(refused))
}

/// Creates an empty file for a backup, and returns its real path.
pub(super) fn prepare_copy(file: &Path) -> Result<PathBuf, StoreError> {
    let no_folder =
        |folder: &Path| StoreError::Conflict(format!("cannot write the backup: the folder {} does not exist", folder.display()));
    let folder = folder_of(file);
    let name = file.file_name().ok_or_else(|| StoreError::Conflict(format!("{} does not name a file", file.display())))?;
    let file = folder.canonicalize().map_err(|_| no_folder(folder))?.join(name);
    match helve_files::create(&file) {
        Ok(_) => Ok(file),
        Err(error) if error.kind() == Some(std::io::ErrorKind::AlreadyExists) => {
            Err(StoreError::Conflict(format!("cannot write the backup: {} already exists", file.display())))
        }
        Err(error) => Err(StoreError::Conflict(format!("cannot write the backup: {error}"))),
    }
}

/// Returns the path of the lock file of a store.
pub(super) fn lock_of(file: &Path) -> PathBuf {
    beside(file, LOCK)
}

/// Converts the error for a file that Helve does not use.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn refused(error: FileError) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

fn create(file: &Path) -> Result<(), StoreError> {
    match helve_files::create(file) {
        Ok(_) => Ok(()),
        // Another process has created the file in the meantime.
        Err(error) if error.kind() == Some(std::io::ErrorKind::AlreadyExists) => helve_files::check_file(file).map(drop).map_err(refused),
        Err(error) => Err(refused(error)),
    }
}

/// Returns the real path of the folder of a file, because SQLite does not follow symbolic links in a path. Creates the folder if it is
/// missing.
fn existing_folder(file: &Path) -> Result<PathBuf, StoreError> {
    let folder = folder_of(file);
    helve_files::create_folder(folder).map_err(refused)?;
    folder.canonicalize().map_err(|error| StoreError::Unavailable(format!("{}: {error}", folder.display())))
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(ending);
    name.into()
}
