//! Files and folders of the current user: created for their owner alone, and not believed where somebody else could have written them.

mod error;
mod file;
mod folder;
mod owner;

pub use error::FileError;
pub use file::{check_file, create, open, read, tighten_file};
pub use folder::{create_folder, own_folder};
