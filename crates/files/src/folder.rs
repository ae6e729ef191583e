//! Folders that only their owner can enter.

use std::fs::{self, DirBuilder};
use std::path::Path;

use crate::error::FileError;
use crate::owner::{FOLDER_MODE, check_owner, others_write, tighten};

/// Creates a folder and its missing parents for the current user alone. A folder that exists stays as it is.
///
/// # Errors
/// Returns an error if the system reports one.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    builder.create(path).map_err(|error| FileError::io(path, error))
}

/// Checks that a folder belongs to the current user and is not writable by others, and removes the permissions of others. Returns
/// whether it exists.
///
/// # Errors
/// Returns an error if it is not such a folder, or is a symbolic link.
pub fn own_folder(path: &Path) -> Result<bool, FileError> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(FileError::io(path, error)),
    };
    if !metadata.is_dir() {
        let what = if metadata.is_symlink() { "is a symbolic link" } else { "is not a folder" };
        return Err(FileError::refused(path, format!("{what}; replace it by a folder")));
    }
    check_owner(path, &metadata)?;
    if others_write(&metadata) {
        let reason = format!("is writable by other users; check that its content is yours, then run `chmod 700 {}`", path.display());
        return Err(FileError::refused(path, reason));
    }
    tighten(path, &metadata, FOLDER_MODE)?;
    Ok(true)
}
