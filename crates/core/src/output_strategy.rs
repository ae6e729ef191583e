//! How an agent calls tools: by the model's own function calling, or in text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an agent calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, crate::Setters)]
#[serde(default, deny_unknown_fields)]
pub struct OutputStrategy {
    /// Whether the model's own function calling is used where it works.
    pub function_calling: bool,
    /// Whether calls are found in structured or plain text where it does not.
    pub fallback_to_structured_output: bool,
}

impl Default for OutputStrategy {
    fn default() -> Self {
        Self { function_calling: true, fallback_to_structured_output: true }
    }
}
