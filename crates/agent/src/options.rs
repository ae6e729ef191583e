//! The options of an agent, and the limits of its runs.

use std::sync::Arc;
use std::time::Duration;

use helve_core::{GenerateOptions, OutputStrategy, ToolChoice};
use helve_dialect::Language;
use serde::{Deserialize, Serialize};

/// Options of an agent.
#[derive(Debug, Clone, helve_core::Setters)]
pub struct AgentOptions {
    /// The name, for events, errors and permission rules.
    pub name: Option<Arc<str>>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// Maximum number of model requests in one run.
    pub max_iterations: u32,
    /// Whether the model may, must or must not call tools. A required call is the first one of a run.
    pub tool_choice: ToolChoice,
    /// Temperature and other options of the model.
    pub generate_options: GenerateOptions,
    /// The other limits of a run.
    pub limits: RunLimits,
    /// The allowed strategies for calls.
    pub output_strategy: OutputStrategy,
    /// The language of Helve's own prompts.
    pub language: Language,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            name: None,
            system_prompt: None,
            max_iterations: 20,
            tool_choice: ToolChoice::Auto,
            generate_options: GenerateOptions::default(),
            limits: RunLimits::default(),
            output_strategy: OutputStrategy::default(),
            language: Language::default(),
        }
    }
}

/// The limits of a run. Each ends it with its own reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, helve_core::Setters)]
#[serde(default)]
pub struct RunLimits {
    /// Maximum number of calls.
    pub max_calls: u32,
    /// Maximum number of input and output tokens.
    pub max_tokens: Option<u64>,
    /// Maximum cost, in US dollars.
    pub max_cost: Option<f64>,
    /// Time limit.
    pub timeout: Option<Duration>,
    /// Maximum number of equal calls with equal results.
    pub same_calls: u32,
    /// Maximum size of one result for the model, in bytes.
    pub result_bytes: usize,
    /// Maximum size of the conversation for the model, in tokens; by default the model's context window, if known.
    pub context_tokens: Option<u32>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { max_calls: 200, max_tokens: None, max_cost: None, timeout: None, same_calls: 4, result_bytes: 1 << 20, context_tokens: None }
    }
}
