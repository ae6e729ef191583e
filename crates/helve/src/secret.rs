//! Secrets, which never show: in results, events, logs and stores a mask or a placeholder stands for them.
//!
//! ```
//! use helve::secret::Redactor;
//!
//! let redactor = Redactor::default();
//! redactor.add(["a-long-and-secret-key".to_owned().into()]);
//! assert_eq!(redactor.clean("the key is a-long-and-secret-key").as_deref(), Some("the key is [REDACTED]"));
//! ```

pub use helve_core::secret::*;
pub use helve_core::{RedactedPieces, Redactor};
