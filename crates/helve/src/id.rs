//! Identifiers of calls, runs, conversations and approval requests. Identifiers sort by creation time, and their prefix names their kind.
//!
//! ```
//! use helve::id::RunId;
//!
//! let run = RunId::mint();
//! assert!(run.to_string().starts_with("run_"));
//! assert_eq!(run.to_string().parse(), Ok(run));
//! ```

pub use helve_core::{ApprovalId, CallId, ConversationId, HolderId, IdError, RunId, Timestamp};
