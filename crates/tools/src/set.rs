//! Named groups of tools.

use std::sync::Arc;

use helve_core::Pattern;
use serde::{Deserialize, Serialize};

/// A named group of tools, as in `tool_sets/*.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSet {
    /// The name of the set.
    pub name: Arc<str>,
    /// What the tools of the set are for.
    #[serde(default)]
    pub description: String,
    /// The tools of the set, by name or pattern.
    pub tools: Vec<Pattern>,
}

impl ToolSet {
    /// Creates a set of tools, by name or pattern.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, tools: impl IntoIterator<Item = impl Into<Pattern>>) -> Self {
        Self { name: name.into(), description: String::new(), tools: tools.into_iter().map(Into::into).collect() }
    }

    /// Sets what the tools of the set are for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }
}
