//! Who owns a file, and who may change it. The one file that knows about Unix permissions.

use std::fs::{Metadata, OpenOptions};
use std::path::Path;

use crate::error::FileError;

/// The permissions of files that only their owner may use.
#[cfg(unix)]
pub(crate) const FILE_MODE: u32 = 0o600;
/// The same of folders.
#[cfg(unix)]
pub(crate) const FOLDER_MODE: u32 = 0o700;

/// Refuses what another user owns. Root can write everything, so what root owns is no worse.
#[cfg(unix)]
pub(crate) fn check_owner(path: &Path, found: &Metadata) -> Result<(), FileError> {
    use std::os::unix::fs::MetadataExt;
    let (user, owner) = (rustix::process::geteuid().as_raw(), found.uid());
    if owner == user || owner == 0 {
        return Ok(());
    }
    Err(FileError::refused(path, format!("belongs to another user (id {owner}); remove it, or make it yours with `chown`")))
}

/// Refuses a file that has another name, under which it may lie where others can reach it.
#[cfg(unix)]
pub(crate) fn check_names(path: &Path, found: &Metadata) -> Result<(), FileError> {
    use std::os::unix::fs::MetadataExt;
    if found.nlink() <= 1 {
        return Ok(());
    }
    Err(FileError::refused(path, format!("has {} names (hard links); put a copy of it in its place", found.nlink())))
}

/// Whether users other than the owner may write to it.
#[cfg(unix)]
pub(crate) fn others_write(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    found.mode() & 0o022 != 0
}

/// Takes permissions away that others have.
#[cfg(unix)]
pub(crate) fn tighten(path: &Path, found: &Metadata, mode: u32) -> Result<(), FileError> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let others_have_some = found.mode() & 0o077 != 0;
    if !others_have_some {
        return Ok(());
    }
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).map_err(|error| FileError::io(path, error))
}

/// Lets a file be opened only by its owner, through no link, and without waiting for the other end of a pipe.
#[cfg(unix)]
pub(crate) fn strictly(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.mode(FILE_MODE).custom_flags(flags.bits().cast_signed())
}

/// Whether a file was not opened because it is a symbolic link.
#[cfg(unix)]
pub(crate) fn is_link(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
mod elsewhere {
    //! Elsewhere the user's folders have their own protection.

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
