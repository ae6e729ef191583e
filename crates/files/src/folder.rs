//! Folders that only their owner can enter.

use std::fs::{self, DirBuilder};
use std::path::Path;

use crate::error::FileError;
use crate::owner::{FOLDER_MODE, check_owner, others_write, tighten};

/// Creates a folder and its parents, as far as they are missing, for the current user alone. One that exists stays as it is.
///
/// # Errors
/// Where the system refuses.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    builder.create(path).map_err(|error| FileError::io(path, error))
}

/// Checks that a folder belongs to the current user and that nobody else may write to it, and keeps others from reading it. Returns
/// whether there is one.
///
/// # Errors
/// Where it is not such a folder, or a symbolic link.
pub fn own_folder(path: &Path) -> Result<bool, FileError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(FileError::io(path, error)),
    };
    if !found.is_dir() {
        let what = if found.is_symlink() { "is a symbolic link" } else { "is not a folder" };
        return Err(FileError::refused(path, format!("{what}; put a folder in its place")));
    }
    check_owner(path, &found)?;
    if others_write(&found) {
        let reason = format!("can be written by other users; see that what is in it is yours, then run `chmod 700 {}`", path.display());
        return Err(FileError::refused(path, reason));
    }
    tighten(path, &found, FOLDER_MODE)?;
    Ok(true)
}
