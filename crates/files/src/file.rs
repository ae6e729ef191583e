//! Creates, opens, reads and checks files that only the current user may read and write.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::error::FileError;
use crate::owner::{FILE_MODE, check_names, check_owner, is_link, others_write, strictly, tighten};

/// Creates a file that only the current user can read and write, and opens it for writing.
///
/// # Errors
/// Returns an error if `path` exists, even as a symbolic link, or if the file cannot be created.
pub fn create(path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    strictly(options.write(true).create_new(true)).open(path).map_err(|error| FileError::io(path, error))
}

/// Opens a file for writing, and creates it if it is missing. Removes the permissions of other users.
///
/// # Errors
/// Returns an error if the file is a symbolic link, is not a regular file, belongs to another user, or has other hard links.
pub fn open(path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    let file = strictly(options.write(true).create(true).truncate(false)).open(path).map_err(|error| link_or_io(path, error))?;
    let metadata = file.metadata().map_err(|error| FileError::io(path, error))?;
    check(path, &metadata)?;
    tighten(path, &metadata, FILE_MODE)?;
    Ok(file)
}

/// Reads a text file of at most `limit` bytes. Returns `None` if the file does not exist.
///
/// # Errors
/// Returns an error if the file is a symbolic link, is not a regular file, belongs to another user, has other hard links, is writable by
/// other users, is larger than `limit`, or is not UTF-8.
pub fn read(path: &Path, limit: u64) -> Result<Option<String>, FileError> {
    let mut options = OpenOptions::new();
    let file = match strictly(options.read(true)).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(link_or_io(path, error)),
    };
    let metadata = file.metadata().map_err(|error| FileError::io(path, error))?;
    check(path, &metadata)?;
    if others_write(&metadata) {
        let reason = format!("is writable by other users; check that its content is yours, then run `chmod 600 {}`", path.display());
        return Err(FileError::refused(path, reason));
    }
    let mut text = String::new();
    file.take(limit.saturating_add(1)).read_to_string(&mut text).map_err(|error| FileError::io(path, error))?;
    if text.len() as u64 > limit {
        return Err(FileError::refused(path, format!("is larger than {limit} bytes; remove it")));
    }
    Ok(Some(text))
}

/// Checks that a file, if it exists, is a regular file of the current user without other hard links. Returns whether the file exists.
/// Does not open the file, because closing it would release the locks that this process holds on it.
///
/// # Errors
/// Returns an error if the file fails the check, or is a symbolic link.
pub fn check_file(path: &Path) -> Result<bool, FileError> {
    Ok(metadata_of(path)?.is_some())
}

/// Removes the permissions of other users from a file, if it exists. Does not open the file, for the same reason as [`check_file`].
///
/// # Errors
/// Returns an error if the file is a symbolic link, is not a regular file, belongs to another user, or has other hard links.
pub fn tighten_file(path: &Path) -> Result<(), FileError> {
    metadata_of(path)?.map_or(Ok(()), |metadata| tighten(path, &metadata, FILE_MODE))
}

fn metadata_of(path: &Path) -> Result<Option<Metadata>, FileError> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::io(path, error)),
    };
    if metadata.is_symlink() {
        return Err(symbolic_link(path));
    }
    check(path, &metadata)?;
    Ok(Some(metadata))
}

fn check(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
    if !metadata.is_file() {
        return Err(FileError::refused(path, "is not a regular file; remove it"));
    }
    check_owner(path, metadata)?;
    check_names(path, metadata)
}

fn link_or_io(path: &Path, error: io::Error) -> FileError {
    if is_link(&error) { symbolic_link(path) } else { FileError::io(path, error) }
}

fn symbolic_link(path: &Path) -> FileError {
    FileError::refused(path, "is a symbolic link, which Helve does not follow here; replace it with the file itself")
}
