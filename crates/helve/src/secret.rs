//! Secrets: a [`Redactor`] replaces known secrets in results, events, logs and stores.
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
