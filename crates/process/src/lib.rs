//! Processes that Helve starts: how they are found, what they know, and that nothing is left when they are over.

mod environment;
mod group;
pub mod program;
mod sweep;
mod tail;

pub use environment::Environment;
pub use group::Group;
pub use tail::{Tail, keep_end, read_tail};
