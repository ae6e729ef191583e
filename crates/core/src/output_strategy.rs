//! How a model calls tools: by native function calling, or in text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, crate::Setters)]
#[serde(default, deny_unknown_fields)]
pub struct OutputStrategy {
    /// Whether to use native function calling where the model supports it.
    pub function_calling: bool,
    /// Whether to fall back to calls in structured or plain text.
    pub fallback_to_structured_output: bool,
}

impl Default for OutputStrategy {
    fn default() -> Self {
        Self { function_calling: true, fallback_to_structured_output: true }
    }
}
