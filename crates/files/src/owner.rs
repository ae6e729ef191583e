//! Checks and sets the owner and the permissions of files. All Unix-specific code is here; other systems check nothing.

use std::fs::{Metadata, OpenOptions};
use std::path::Path;

use crate::error::FileError;

/// Unix permissions of private files.
#[cfg(unix)]
pub(crate) const FILE_MODE: u32 = 0o600;
/// Unix permissions of private folders.
#[cfg(unix)]
pub(crate) const FOLDER_MODE: u32 = 0o700;

/// Returns an error if a file or folder belongs to another user. Accepts files of root, because root can write to any file.
#[cfg(unix)]
pub(crate) fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
    use std::os::unix::fs::MetadataExt;
    let (user, owner) = (rustix::process::geteuid().as_raw(), metadata.uid());
    if owner == user || owner == 0 {
        return Ok(());
    }
    Err(FileError::refused(path, format!("belongs to another user (id {owner}); remove it, or make it yours with `chown`")))
}

/// Returns an error if a file has other hard links, because they may be in folders that other users can access.
#[cfg(unix)]
pub(crate) fn check_names(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
    use std::os::unix::fs::MetadataExt;
    if metadata.nlink() <= 1 {
        return Ok(());
    }
    Err(FileError::refused(path, format!("has {} hard links; replace it with a copy", metadata.nlink())))
}

/// Returns whether other users may write to a file or folder.
#[cfg(unix)]
pub(crate) fn others_write(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o022 != 0
}

/// Sets the permissions of a file or folder to `mode` if other users have any.
#[cfg(unix)]
pub(crate) fn tighten(path: &Path, metadata: &Metadata, mode: u32) -> Result<(), FileError> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let others_have_some = metadata.mode() & 0o077 != 0;
    if !others_have_some {
        return Ok(());
    }
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).map_err(|error| FileError::io(path, error))
}

/// Sets options so that `open` does not follow symbolic links, does not block on pipes, and creates files with [`FILE_MODE`].
#[cfg(unix)]
pub(crate) fn strictly(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.mode(FILE_MODE).custom_flags(flags.bits().cast_signed())
}

/// Returns whether `open` failed because the path is a symbolic link.
#[cfg(unix)]
pub(crate) fn is_link(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
mod elsewhere {
    //! Does nothing: other systems protect the user's folders by default.

    use super::{FileError, Metadata, OpenOptions, Path};

    pub(crate) const FILE_MODE: u32 = 0;
    pub(crate) const FOLDER_MODE: u32 = 0;

    pub(crate) fn check_owner(_: &Path, _: &Metadata) -> Result<(), FileError> {
        Ok(())
    }

    pub(crate) fn check_names(_: &Path, _: &Metadata) -> Result<(), FileError> {
        Ok(())
    }

    pub(crate) fn others_write(_: &Metadata) -> bool {
        false
    }

    pub(crate) fn tighten(_: &Path, _: &Metadata, _: u32) -> Result<(), FileError> {
        Ok(())
    }

    pub(crate) fn strictly(options: &mut OpenOptions) -> &mut OpenOptions {
        options
    }

    pub(crate) fn is_link(_: &std::io::Error) -> bool {
        false
    }
}

#[cfg(not(unix))]
pub(crate) use elsewhere::*;
