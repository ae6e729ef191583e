//! The options of an agent, and the limits of its runs.

use std::sync::Arc;
use std::time::Duration;

use helve_core::{GenerateOptions, OutputStrategy, ToolChoice};
use helve_dialect::Language;
use serde::{Deserialize, Serialize};

/// Options of an agent.
#[derive(Debug, Clone, helve_core::Setters)]
pub struct AgentOptions {
    /// The name of the agent, for events, errors and permission rules.
    pub name: Option<Arc<str>>,
    /// The system prompt, without contexts and Helve's own instructions.
    pub system_prompt: Option<String>,
    /// Maximum number of model requests in one run.
    pub max_iterations: u32,
    /// Whether the model may, must or must not call tools. If a call is required, only the first call of a run is.
    pub tool_choice: ToolChoice,
    /// Temperature and other options of the model.
    pub generate_options: GenerateOptions,
    /// The limits of a run, besides `max_iterations`.
    pub limits: RunLimits,
    /// The strategies that the model may use for calls.
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

/// The limits of a run. A run that reaches a limit on calls, tokens, cost, time or repetitions ends with a reason that names the limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, helve_core::Setters)]
#[serde(default)]
pub struct RunLimits {
    /// Maximum number of calls in one run.
    pub max_calls: u32,
    /// Maximum number of input and output tokens of one run, together.
    pub max_tokens: Option<u64>,
    /// Maximum cost of one run, in US dollars.
    pub max_cost: Option<f64>,
    /// Maximum duration of a run, without the time that people need to decide.
    pub timeout: Option<Duration>,
    /// Number of equal calls with equal results that ends a run.
    pub same_calls: u32,
    /// Maximum size of one tool result for the model, in bytes. Longer results are shortened.
    pub result_bytes: usize,
    /// Size of the context window, in tokens; by default that of the model, if known. Old tool results are shortened to fit.
    pub context_tokens: Option<u32>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { max_calls: 200, max_tokens: None, max_cost: None, timeout: None, same_calls: 4, result_bytes: 1 << 20, context_tokens: None }
    }
}
