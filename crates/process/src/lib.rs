//! Processes that Helve starts: finding programs, their environment, and killing everything that is left when they end.

mod command_line;
mod environment;
mod group;
pub mod program;
mod scripts;
mod sweep;
mod tail;

pub use command_line::CommandLine;
pub use environment::Environment;
pub use group::{Group, end_all};
pub use scripts::{Scripts, script_digest};
pub use tail::{Tail, keep_end, read_tail};
