//! How an agent is set up: what it is told, how it calls tools, when it stops.

use std::sync::Arc;
use std::time::Duration;

use helve_core::{GenerateOptions, OutputStrategy, ToolChoice};
use helve_dialect::Language;
use serde::{Deserialize, Serialize};

/// How an agent is set up.
#[derive(Debug, Clone, helve_core::Setters)]
pub struct AgentOptions {
    /// Its name, for events, errors and permission rules.
    pub name: Option<Arc<str>>,
    /// What the model is told before anyone speaks.
    pub system_prompt: Option<String>,
    /// How often the model is asked in one run.
    pub max_iterations: u32,
    /// Whether the model may, must or must not call tools. A call that it must make is the first one of a run.
    pub tool_choice: ToolChoice,
    /// How the model answers.
    pub generate_options: GenerateOptions,
    /// When a run stops, besides its iterations.
    pub limits: RunLimits,
    /// How calls are carried.
    pub output_strategy: OutputStrategy,
    /// The language of what Helve itself tells the model.
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

/// When a run stops. Each limit ends it with a reason of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, helve_core::Setters)]
#[serde(default)]
pub struct RunLimits {
    /// How many calls it may make.
    pub max_calls: u32,
    /// How many tokens it may use, read and written.
    pub max_tokens: Option<u64>,
    /// What it may cost, in US dollars.
    pub max_cost: Option<f64>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How often the same call may give the same result, one after the other.
    pub same_calls: u32,
    /// How much of one result the model is told, in bytes.
    pub result_bytes: usize,
    /// How many tokens of a conversation the model is told; what it can read, where that is known.
    pub context_tokens: Option<u32>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { max_calls: 200, max_tokens: None, max_cost: None, timeout: None, same_calls: 4, result_bytes: 1 << 20, context_tokens: None }
    }
}
