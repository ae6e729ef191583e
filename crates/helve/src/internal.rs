//! What Helve's own command line stands on. It may change at any time.

#[cfg(feature = "mcp")]
pub use crate::compose::end_programs;
#[cfg(feature = "project")]
pub use crate::compose::read_yaml;
pub use helve_core::{environment, json, printable, suggest};
