//! Internals for Helve's own command line. Not covered by semantic versioning.

#[cfg(feature = "mcp")]
pub use crate::compose::end_programs;
#[cfg(feature = "project")]
pub use crate::compose::read_yaml;
pub use helve_core::{environment, json, printable, suggest};
