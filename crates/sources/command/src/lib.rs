//! Executables as tools: arguments in, text or JSON out, and no process left behind.
//!
//! A call uses no shell, starts with an empty environment and has an output limit. When it ends, everything it started is killed: its
//! process group, and on Linux also processes that left the group.

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
