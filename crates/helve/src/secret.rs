//! Secrets, which never show: in results, events, logs and stores a mask or a placeholder stands for them.

pub use helve_core::secret::*;
pub use helve_core::{RedactedPieces, Redactor};
