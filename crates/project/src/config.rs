//! The contents of `helve.yaml`, `tool_sets/*.yaml` and `agents/*.yaml`.

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
    /// Default model of all agents.
    pub model: Option<String>,
    /// Models under names of your own.
    pub models: BTreeMap<String, ModelEntry>,
    /// Default agent.
    pub agent: Option<String>,
    /// Sources in order of precedence: `builtin`, `command`, `native`, `mcp`. If two tools have the same name, the earlier source wins.
    pub sources: Option<Vec<String>>,
    /// Permission rules. If several rules match a call, the strictest wins.
    pub permissions: Vec<PermissionRule>,
    /// How approvals are requested.
    pub approvals: ApprovalSettings,
    /// The store: `sqlite:FILE` or `postgres://…`.
    pub store: Option<String>,
    /// Whether to store known secrets in messages as they are instead of replacing them by placeholders.
    pub store_secrets: bool,
    /// Listen address of the server.
    pub listen: Option<String>,
    /// Public URL of the server, used in links and sent to devices.
    pub public_url: Option<String>,
    /// Host names the server accepts, in addition to loopback names and IP addresses.
    pub allowed_hosts: Vec<String>,
    /// Which agent serves which device.
    pub devices: Vec<DeviceRule>,
    /// Limits for all calls together.
    pub limits: CallLimits,
}

impl HelveFile {
    /// The keys, tokens and passwords in the file.
    pub fn secrets(&self) -> impl Iterator<Item = SecretString> {
        let keys = self.models.values().filter_map(|model| model.api_key.clone());
        let password = self.store.as_deref().and_then(helve_core::secret::password_in_url).map(Into::into);
        keys.chain(self.devices.iter().filter_map(|device| device.token.clone())).chain(password)
    }
}

/// How approvals are requested.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalSettings {
    /// How long an approval stays open, such as `7d`; forever if omitted.
    pub expire: Option<HumanDuration>,
    /// URL that receives each new approval as JSON, by POST.
    pub webhook: Option<String>,
}

/// A model under a name of your own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// The provider, such as `openai_compatible`.
    pub provider: String,
    /// Base URL of the API.
    pub base_url: Option<String>,
    /// The API key; better taken from the environment: `${NAME}`.
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
    /// Timeouts of its responses.
    #[serde(default)]
    pub timeouts: Timeouts,
}

/// Price of a model in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceEntry {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
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

/// Which agent serves a device.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceRule {
    /// Device ids; patterns are allowed.
    #[serde(rename = "match")]
    pub device: Pattern,
    /// The agent.
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
    /// Maximum number of bytes of a result that the model receives.
    pub result_bytes: Option<u64>,
}

/// `tool_sets/*.yaml`: a named group of tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetFile {
    /// The name.
    pub name: String,
    /// What the tools are for.
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
    /// What the agent is for; other agents read this.
    #[serde(default)]
    pub description: String,
    /// The model; the project's model if omitted.
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
    /// How the model calls tools.
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
    /// Stricter permissions, by tool name or pattern; an agent can tighten permissions but never loosen them.
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
    /// How often the same call may return the same result.
    pub same_calls: Option<u32>,
    /// Maximum number of tokens.
    pub max_tokens: Option<u64>,
    /// Maximum cost in US dollars.
    pub max_cost: Option<f64>,
    /// Maximum duration.
    pub timeout: Option<HumanDuration>,
}
