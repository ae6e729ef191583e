//! Creates and checks folders that only the current user may access.

use std::fs::{self, DirBuilder};
use std::path::Path;

use crate::error::FileError;
use crate::owner::{FOLDER_MODE, check_owner, others_write, tighten};

/// Creates a folder and its missing parents with access for the current user only. Does not change folders that exist.
///
/// # Errors
/// Returns an error if a folder cannot be created.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    builder.create(path).map_err(|error| FileError::io(path, error))
}

/// Checks that a folder belongs to the current user and is not writable by other users, then removes the other permissions of other
/// users. Returns whether the folder exists.
///
/// # Errors
/// Returns an error if `path` is a symbolic link, is not a folder, belongs to another user, or is writable by other users.
pub fn own_folder(path: &Path) -> Result<bool, FileError> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(FileError::io(path, error)),
    };
    if !metadata.is_dir() {
        let what = if metadata.is_symlink() { "is a symbolic link" } else { "is not a folder" };
        return Err(FileError::refused(path, format!("{what}; replace it with a folder")));
    }
    check_owner(path, &metadata)?;
    if others_write(&metadata) {
        let reason = format!("is writable by other users; check that its content is yours, then run `chmod 700 {}`", path.display());
        return Err(FileError::refused(path, reason));
    }
    tighten(path, &metadata, FOLDER_MODE)?;
    Ok(true)
}
