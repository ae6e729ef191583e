//! Command tools: programs that agents can call. A program gets the arguments, and writes text or JSON.
//!
//! A call uses no shell, starts with an empty environment, and has an output limit. When a call ends, Helve kills all processes that the
//! call started: the process group, and on Linux also processes that left the group.

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
