//! Names of calls, runs, conversations and questions. They sort by time.

pub use helve_core::{ApprovalId, CallId, ConversationId, HolderId, IdError, RunId, Timestamp};
