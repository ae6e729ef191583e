//! Processes that Helve starts: finds programs, builds their environment, and kills the processes that they leave behind.

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
