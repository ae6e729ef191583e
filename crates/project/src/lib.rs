//! Project folders: finds and parses their files, reports errors as diagnostics, and manages trust.
//!
//! This crate reads YAML and checks its structure. The crate of each source interprets its own tool files.

mod config;
mod diagnostic;
mod discover;
mod environment;
mod file;
mod fingerprint;
mod gate;
mod state;
mod state_file;
mod trust;
mod yaml;

pub use config::{AgentFile, AgentLimits, CallLimits, DeviceRule, HelveFile, ModelEntry, OnResult, SetFile};
pub use diagnostic::{Diagnostic, Severity};
pub use discover::{FileKind, ProjectFolder, discover};
pub use environment::{has_variable, variables_in};
pub use file::{ProjectFile, read_inside};
pub use fingerprint::Fingerprint;
pub use gate::Gate;
pub use state::{StateError, StateFolder};
pub use state_file::{OnDamage, StateFile};
pub use trust::{Capability, CapabilityChange, FieldChange, Trust, TrustStore};
pub use yaml::{Node, Position, YamlError, read as read_yaml};
