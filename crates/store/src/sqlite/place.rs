//! The file of a store, and those beside it: for their owner alone from the first byte, and reached through no symbolic link.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use helve_core::StoreError;
use helve_files::FileError;
use parking_lot::Mutex;

/// What SQLite and Helve keep beside the file. SQLite gives its own the permissions of the file.
const BESIDE: [&str; 4] = ["-wal", "-shm", "-journal", LOCK];
/// The file whose lock makes a process the one that gives tasks out.
const LOCK: &str = "-lock";

/// Held while a file is created. A file that is closed ends all locks that its process has on it, so nobody may open it meanwhile.
static CREATING: Mutex<()> = Mutex::new(());

/// Makes a file ready to be opened, and says where it is: its folder may be a symbolic link, it may not.
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

/// Keeps others from reading a store that an earlier version, or a copy, left open to them.
pub(super) fn tighten(file: &Path) -> Result<(), StoreError> {
    helve_files::tighten_file(file).map_err(refused)?;
    BESIDE.iter().try_for_each(|ending| helve_files::tighten_file(&beside(file, ending)).map_err(refused))
}

/// Creates an empty file for a copy, and says where it is.
pub(super) fn prepare_copy(file: &Path) -> Result<PathBuf, StoreError> {
    let no_folder = |folder: &Path| StoreError::Conflict(format!("the copy cannot be written: there is no folder {}", folder.display()));
    let folder = folder_of(file);
    let name = file.file_name().ok_or_else(|| StoreError::Conflict(format!("{} does not name a file", file.display())))?;
    let file = folder.canonicalize().map_err(|_| no_folder(folder))?.join(name);
    match helve_files::create(&file) {
        Ok(_) => Ok(file),
        Err(error) if error.kind() == Some(std::io::ErrorKind::AlreadyExists) => {
            Err(StoreError::Conflict(format!("{} is there already", file.display())))
        }
        Err(error) => Err(StoreError::Conflict(format!("the copy cannot be written: {error}"))),
    }
}

/// The file whose lock makes a process the one that gives tasks out.
pub(super) fn lock_of(file: &Path) -> PathBuf {
    beside(file, LOCK)
}

/// What a file means that is not used.
#[expect(clippy::needless_pass_by_value, reason = "it is what errors are turned into")]
pub(super) fn refused(error: FileError) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

fn create(file: &Path) -> Result<(), StoreError> {
    match helve_files::create(file) {
        Ok(_) => Ok(()),
        // Another process was quicker.
        Err(error) if error.kind() == Some(std::io::ErrorKind::AlreadyExists) => helve_files::check_file(file).map(drop).map_err(refused),
        Err(error) => Err(refused(error)),
    }
}

/// The folder of a file by a path without symbolic links, which SQLite follows nowhere in a path. It is created where it is missing.
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
