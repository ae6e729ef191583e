//! Names of calls, runs, conversations and requests. They sort by time, and say what they name.
//!
//! ```
//! use helve::id::RunId;
//!
//! let run = RunId::mint();
//! assert!(run.to_string().starts_with("run_"));
//! assert_eq!(run.to_string().parse(), Ok(run));
//! ```

pub use helve_core::{ApprovalId, CallId, ConversationId, HolderId, IdError, RunId, Timestamp};
