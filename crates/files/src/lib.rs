//! Private files and folders, which only the current user can access. Files that another user could have written are rejected.

mod error;
mod file;
mod folder;
mod owner;

pub use error::FileError;
pub use file::{check_file, create, open, read, tighten_file};
pub use folder::{create_folder, own_folder};
