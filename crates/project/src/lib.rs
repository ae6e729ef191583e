//! The project folder: which files there are, what they say, where they are wrong, and whether it may be trusted.
//!
//! This crate reads files and knows their shape; what a tool file means is known to the source that it describes.

mod config;
mod diagnostic;
mod discover;
mod environment;
mod file;
mod fingerprint;
mod gate;
mod state;
mod trust;
mod yaml;

pub use config::{AgentFile, AgentLimits, CallLimits, DeviceRule, HelveFile, ModelEntry, OnResult, SetFile};
pub use diagnostic::{Diagnostic, Severity};
pub use discover::{Folder, Kind, discover};
pub use environment::{has_variable, variables_in};
pub use file::{ProjectFile, read_inside};
pub use fingerprint::Fingerprint;
pub use gate::Gate;
pub use state::{StateError, StateFolder};
pub use trust::{Capability, Change, FieldChange, Trust, TrustStore};
pub use yaml::{Node, Position, YamlError, read as read_yaml};
