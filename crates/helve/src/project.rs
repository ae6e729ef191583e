//! A folder that describes tools, tool sets, agents and rules.
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! let helve = helve::project::OpenOptions::new().builtins(true).open("house")?;
//! println!("{:?}", helve.call("get_time", serde_json::json!({})).await.text());
//! # Ok(()) }
//! ```

pub use crate::compose::{
    Capability, CapabilityChange, Diagnostic, FieldChange, NoAgent, OnResult, OpenOptions, ProjectAgent, ProjectReport, Severity,
    StateError, StateFolder, Trust, TrustChanges, file_schemas,
};
