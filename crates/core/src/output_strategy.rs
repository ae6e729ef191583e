//! Which ways of calling tools an agent may use: native function calling, or calls in text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which ways of calling tools an agent may use: native function calling, structured output, calls in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, crate::Setters)]
#[serde(default, deny_unknown_fields)]
pub struct OutputStrategy {
    /// Whether to use native function calling if the model supports it.
    pub function_calling: bool,
    /// Whether to fall back to structured output or calls in text.
    pub fallback_to_structured_output: bool,
}

impl Default for OutputStrategy {
    fn default() -> Self {
        Self { function_calling: true, fallback_to_structured_output: true }
    }
}
