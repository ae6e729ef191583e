//! Permissions: rules about calls, approval requests, and the approvers who decide them.
//!
//! The default permission of a tool is `auto`, `confirm` or `deny`. A [`PermissionRule`] overrides it by tool, source, set, agent or
//! arguments; the strictest matching rule wins. A call that needs approval becomes an [`ApprovalRequest`], which an [`Approver`] decides.
//!
//! ```
//! use helve::prelude::*;
//!
//! /// Deletes a file.
//! #[tool(permission = "confirm")]
//! fn delete(path: String) -> String {
//!     format!("deleted {path}")
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let helve = Helve::builder().tool(delete::tool()).build().await?;
//! let careful = |request: ApprovalRequest| async move {
//!     let path = request.call.arguments["path"].as_str().unwrap_or_default().to_owned();
//!     if path.starts_with("/tmp/") { Decision::Approve } else { Decision::Deny { reason: Some("not there".into()) } }
//! };
//! let call = ToolCall::new("delete", json!({"path": "/etc/passwd"}));
//! let state = helve.executor().call_with(&helve.toolkit(), call, &CallContext::default(), &careful).await;
//! assert_eq!(state.into_outcome().error().map(ToolError::message), Some("the user denied the call: not there"));
//! # Ok(()) }
//! ```

#[cfg(feature = "store")]
pub use crate::compose::DecideError;
pub use helve_core::{
    ApprovalRequest, Approver, Decision, Digest, DynApprover, Grant, Permission, PermissionRule, Policy, Ruling, Subject, Verdict,
    call_digest,
};
