//! Ownership and permissions. The only file that knows about Unix.

use std::fs::{Metadata, OpenOptions};
use std::path::Path;

use crate::error::FileError;

/// Permissions of private files.
#[cfg(unix)]
pub(crate) const FILE_MODE: u32 = 0o600;
/// Permissions of private folders.
#[cfg(unix)]
pub(crate) const FOLDER_MODE: u32 = 0o700;

/// Refuses what another user owns. Root can write everything anyway, so its files are accepted.
#[cfg(unix)]
pub(crate) fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
    use std::os::unix::fs::MetadataExt;
    let (user, owner) = (rustix::process::geteuid().as_raw(), metadata.uid());
    if owner == user || owner == 0 {
        return Ok(());
    }
    Err(FileError::refused(path, format!("belongs to another user (id {owner}); remove it, or make it yours with `chown`")))
}

/// Refuses a file with other hard links, which may be where other users can reach them.
#[cfg(unix)]
pub(crate) fn check_names(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
    use std::os::unix::fs::MetadataExt;
    if metadata.nlink() <= 1 {
        return Ok(());
    }
    Err(FileError::refused(path, format!("has {} names (hard links); replace it by a copy", metadata.nlink())))
}

/// Whether other users may write to it.
#[cfg(unix)]
pub(crate) fn others_write(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o022 != 0
}

/// Removes the permissions of other users.
#[cfg(unix)]
pub(crate) fn tighten(path: &Path, metadata: &Metadata, mode: u32) -> Result<(), FileError> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let others_have_some = metadata.mode() & 0o077 != 0;
    if !others_have_some {
        return Ok(());
    }
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).map_err(|error| FileError::io(path, error))
}

/// Makes an open follow no symbolic link, wait for no pipe, and create files for their owner only.
#[cfg(unix)]
pub(crate) fn strictly(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.mode(FILE_MODE).custom_flags(flags.bits().cast_signed())
}

/// Whether an open failed because of a symbolic link.
#[cfg(unix)]
pub(crate) fn is_link(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
mod elsewhere {
    //! Other systems protect the user's folders themselves.

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
