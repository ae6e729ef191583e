//! Files that only their owner can read and write.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::error::FileError;
use crate::owner::{FILE_MODE, check_names, check_owner, is_link, others_write, strictly, tighten};

/// Creates a file for the current user alone.
///
/// # Errors
/// Where there is something of this name already, also a symbolic link, or the system refuses.
pub fn create(path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    strictly(options.write(true).create_new(true)).open(path).map_err(|error| FileError::io(path, error))
}

/// Opens a file to write, and creates it where it is missing.
///
/// # Errors
/// Where it is no regular file of the current user, or a symbolic link.
pub fn open(path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    let file = strictly(options.write(true).create(true).truncate(false)).open(path).map_err(|error| link_or_io(path, error))?;
    let found = file.metadata().map_err(|error| FileError::io(path, error))?;
    check(path, &found)?;
    tighten(path, &found, FILE_MODE)?;
    Ok(file)
}

/// Reads a text, of at most so many bytes; `None` where there is no such file.
///
/// # Errors
/// Where it is no regular file of the current user, other users may write to it, it is a symbolic link, or too large.
pub fn read(path: &Path, limit: u64) -> Result<Option<String>, FileError> {
    let mut options = OpenOptions::new();
    let file = match strictly(options.read(true)).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(link_or_io(path, error)),
    };
    let found = file.metadata().map_err(|error| FileError::io(path, error))?;
    check(path, &found)?;
    if others_write(&found) {
        let reason = format!("can be written by other users; see that it is yours, then run `chmod 600 {}`", path.display());
        return Err(FileError::refused(path, reason));
    }
    let mut text = String::new();
    file.take(limit.saturating_add(1)).read_to_string(&mut text).map_err(|error| FileError::io(path, error))?;
    if text.len() as u64 > limit {
        return Err(FileError::refused(path, format!("is larger than {limit} bytes; remove it")));
    }
    Ok(Some(text))
}

/// Checks that a file, if there is one, is a regular one of the current user with a single name. It is not opened: closing a file ends
/// the locks that this process has on it. Returns whether there is one.
///
/// # Errors
/// Where it is not such a file, or a symbolic link.
pub fn check_file(path: &Path) -> Result<bool, FileError> {
    Ok(look_at(path)?.is_some())
}

/// Takes permissions away that others have on a file, if there is one. It is not opened, as with [`check_file`].
///
/// # Errors
/// Where it is no regular file of the current user with a single name, or a symbolic link.
pub fn tighten_file(path: &Path) -> Result<(), FileError> {
    look_at(path)?.map_or(Ok(()), |found| tighten(path, &found, FILE_MODE))
}

fn look_at(path: &Path) -> Result<Option<Metadata>, FileError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::io(path, error)),
    };
    if found.is_symlink() {
        return Err(symbolic_link(path));
    }
    check(path, &found)?;
    Ok(Some(found))
}

fn check(path: &Path, found: &Metadata) -> Result<(), FileError> {
    if !found.is_file() {
        return Err(FileError::refused(path, "is not a regular file; remove it"));
    }
    check_owner(path, found)?;
    check_names(path, found)
}

fn link_or_io(path: &Path, error: io::Error) -> FileError {
    if is_link(&error) { symbolic_link(path) } else { FileError::io(path, error) }
}

fn symbolic_link(path: &Path) -> FileError {
    FileError::refused(path, "is a symbolic link, which is not followed; put the file itself in its place")
}
