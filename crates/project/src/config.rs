//! The types of `helve.yaml`, `tool_sets/*.yaml` and `agents/*.yaml`. Their comments are the descriptions in the JSON Schemas.

use std::collections::BTreeMap;

use helve_core::authored::HumanDuration;
use helve_core::{OutputStrategy, Pattern, Permission, PermissionRule};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

/// `helve.yaml`. Every field is optional.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HelveFile {
    /// Default model, for agents that name none.
    pub model: Option<String>,
    /// Models that you define, by name.
    pub models: BTreeMap<String, ModelEntry>,
    /// Name of the default agent, for commands that name none.
    pub agent: Option<String>,
    /// Sources in order of precedence: `builtin`, `command`, `native`, `mcp`. If two tools have the same name, the earlier source wins.
    pub sources: Option<Vec<String>>,
    /// Permission rules. If several rules match a call, the strictest wins.
    pub permissions: Vec<PermissionRule>,
    /// Settings of approval requests.
    pub approvals: ApprovalSettings,
    /// The store: `sqlite:FILE` or `postgres://…`.
    pub store: Option<String>,
    /// Whether messages are stored with known secrets, instead of with placeholders for them.
    pub store_secrets: bool,
    /// Address and port on which the server listens.
    pub listen: Option<String>,
    /// Public URL of the server, used in links and sent to devices.
    pub public_url: Option<String>,
    /// Host names the server accepts, in addition to loopback names and IP addresses.
    pub allowed_hosts: Vec<String>,
    /// Rules that assign agents to devices.
    pub devices: Vec<DeviceRule>,
    /// Limits for all calls together.
    pub limits: CallLimits,
}

impl HelveFile {
    /// Returns the keys, tokens and passwords in the file.
    pub fn secrets(&self) -> impl Iterator<Item = SecretString> {
        let keys = self.models.values().filter_map(|model| model.api_key.clone());
        let password = self.store.as_deref().and_then(helve_core::secret::password_in_url).map(Into::into);
        keys.chain(self.devices.iter().filter_map(|device| device.token.clone())).chain(password)
    }
}

/// Settings of approval requests.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalSettings {
    /// Time until an approval request expires, such as `7d`. Requests never expire if omitted.
    pub expire: Option<HumanDuration>,
    /// URL to which each new approval request is sent as JSON, by POST.
    pub webhook: Option<String>,
}

/// A model that you define.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// The provider, such as `openai_compatible`.
    pub provider: String,
    /// Base URL of the API.
    pub base_url: Option<String>,
    /// The API key. To take it from the environment, which is safer, write `${NAME}`.
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// The provider's name for the model.
    pub model: Option<String>,
    /// Size of the context window in tokens.
    pub context_tokens: Option<u32>,
    /// Whether the model supports native function calling, if known.
    pub function_calling: Option<bool>,
    /// Price in US dollars per million tokens.
    pub price: Option<PriceEntry>,
    /// Timeouts of the model's responses.
    #[serde(default)]
    pub timeouts: Timeouts,
}

/// Price of a model in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceEntry {
    /// Price of a million input tokens.
    pub input: f64,
    /// Price of a million output tokens.
    pub output: f64,
}

/// Timeouts of a model's responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Timeout for the first byte of a response, such as `5m`.
    pub first_byte: Option<HumanDuration>,
    /// Timeout between two chunks of a response.
    pub idle: Option<HumanDuration>,
}

/// A rule that assigns an agent to devices.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceRule {
    /// Id of the device, or a pattern for several ids.
    #[serde(rename = "match")]
    pub device: Pattern,
    /// Name of the agent that serves the device.
    pub agent: Option<String>,
    /// The token that the device must present.
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
}

/// Limits for all calls together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimits {
    /// Maximum number of concurrent calls.
    pub concurrency: Option<std::num::NonZeroU32>,
    /// Maximum size of a tool result for the model, in bytes.
    pub result_bytes: Option<u64>,
}

/// `tool_sets/*.yaml`: a named group of tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetFile {
    /// The name.
    pub name: String,
    /// Purpose of the tool set.
    #[serde(default)]
    pub description: String,
    /// Tools by name or pattern.
    #[serde(default)]
    pub tools: Vec<Pattern>,
    /// Other tool sets to include.
    #[serde(default)]
    pub tool_sets: Vec<String>,
}

/// `agents/*.yaml`: an agent, its model and its tools.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentFile {
    /// The name.
    pub name: String,
    /// Purpose of the agent, for other agents.
    #[serde(default)]
    pub description: String,
    /// The model. The project's model if omitted.
    pub model: Option<String>,
    /// The system prompt.
    #[serde(default)]
    pub instructions: String,
    /// Tool sets by name.
    #[serde(default)]
    pub tool_sets: Vec<String>,
    /// Tools by name or pattern.
    #[serde(default)]
    pub tools: Vec<Pattern>,
    /// Strategies that the model may use to call tools.
    #[serde(default)]
    pub output_strategy: OutputStrategy,
    /// What to do when a background call ends while no run is active.
    #[serde(default)]
    pub on_result: OnResult,
    /// Agents that this agent may call.
    #[serde(default)]
    pub subagents: Vec<String>,
    /// Limits of a run.
    #[serde(default)]
    pub limits: AgentLimits,
    /// Permissions by tool name or pattern. An agent can tighten permissions, but never loosen them.
    #[serde(default)]
    pub permissions: BTreeMap<String, Permission>,
}

/// What to do when a background call ends while no run is active.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnResult {
    /// Deliver the result with the next message to the agent.
    #[default]
    NextTurn,
    /// Let a worker start a run at once.
    Run,
}

/// Limits of a run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentLimits {
    /// Maximum number of model requests.
    pub max_iterations: Option<u32>,
    /// Maximum number of tool calls.
    pub max_calls: Option<u32>,
    /// Number of equal calls with equal results that ends a run.
    pub same_calls: Option<u32>,
    /// Maximum number of input and output tokens, together.
    pub max_tokens: Option<u64>,
    /// Maximum cost in US dollars.
    pub max_cost: Option<f64>,
    /// Maximum duration, such as `10m`.
    pub timeout: Option<HumanDuration>,
}
