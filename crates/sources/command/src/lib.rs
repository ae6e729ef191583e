//! Executables as tools: arguments in, text or JSON out, and no process left behind.

mod definition;

pub use definition::{CommandDefinition, OutputFormat, Stdin};
