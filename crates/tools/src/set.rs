//! Named groups of tools.

use std::sync::Arc;

use helve_core::Pattern;
use serde::{Deserialize, Serialize};

/// A named group of tools, as in `tool_sets/*.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSet {
    /// Its name.
    pub name: Arc<str>,
    /// What it is good for.
    #[serde(default)]
    pub description: String,
    /// Its tools, by name or pattern.
    pub tools: Vec<Pattern>,
}
