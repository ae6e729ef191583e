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

impl ToolSet {
    /// A set of these tools, by name or pattern.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, tools: impl IntoIterator<Item = impl Into<Pattern>>) -> Self {
        Self { name: name.into(), description: String::new(), tools: tools.into_iter().map(Into::into).collect() }
    }

    /// Sets what it is good for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }
}
