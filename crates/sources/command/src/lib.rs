//! Executables as tools: arguments in, text or JSON out, and no process left behind.
//!
//! A call never goes through a shell, starts from an empty environment, reads and keeps a bounded amount, and ends
//! with everything dead that it started: the process group, and on Linux also what left the group.

mod argv;
mod attempt;
mod capture;
mod check;
mod definition;
mod process;
mod result;
mod template;
mod tool;

pub use definition::{CommandDefinition, OutputFormat, Stdin};
