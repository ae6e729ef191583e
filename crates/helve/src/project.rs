//! Project folders: tools, tool sets, agents and permission rules in YAML files.
//!
//! `helve init` on the command line creates a sample project. A folder may come from someone else: until a person trusts the folder
//! ([`Helve::trust`](crate::Helve::trust)), agents need approval for its tools, and Helve does not start its MCP servers.
//! [`ProjectReport`] lists what the folder contains, with errors and warnings by file and line.
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! let helve = helve::project::OpenOptions::new().builtins(true).open("house")?;
//! println!("{:?}", helve.call("get_time", serde_json::json!({})).await.text());
//! # Ok(()) }
//! ```

pub use crate::compose::{
    Capability, CapabilityChange, ChooseAgentError, Diagnostic, FieldChange, OnResult, OpenOptions, ProjectAgent, ProjectReport, Severity,
    StateError, StateFolder, Trust, TrustChanges, file_schemas,
};
