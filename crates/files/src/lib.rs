//! Private files and folders of the current user: only their owner can access them, and files that another user could have written are
//! refused.

mod error;
mod file;
mod folder;
mod owner;

pub use error::FileError;
pub use file::{check_file, create, open, read, tighten_file};
pub use folder::{create_folder, own_folder};
