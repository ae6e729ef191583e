//! What people write in `helve.yaml`, `tool_sets/*.yaml` and `agents/*.yaml`.

use std::collections::BTreeMap;

use helve_core::authored::HumanDuration;
use helve_core::{OutputStrategy, Pattern, Permission, PermissionRule};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

/// `helve.yaml`: everything is optional.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HelveFile {
    /// The model that agents use unless they say otherwise.
    pub model: Option<String>,
    /// Models by a name of your own.
    pub models: BTreeMap<String, ModelEntry>,
    /// The agent that answers unless another is asked for.
    pub agent: Option<String>,
    /// Sources in order; where names meet, the earlier keeps them. Known are `builtin`, `command`, `native` and `mcp`.
    pub sources: Option<Vec<String>>,
    /// Who may call what; among rules that match the strictest wins.
    pub permissions: Vec<PermissionRule>,
    /// How people are asked about calls.
    pub approvals: ApprovalSettings,
    /// Where records are kept: `sqlite:FILE` or `postgres://…`.
    pub store: Option<String>,
    /// Whether known secrets that people or models say are stored as they are, instead of as placeholders.
    pub store_secrets: bool,
    /// The address the server listens on.
    pub listen: Option<String>,
    /// The address that devices and links are told.
    pub public_url: Option<String>,
    /// Host names the server answers to, besides loopback names and addresses.
    pub allowed_hosts: Vec<String>,
    /// Which agent answers which device.
    pub devices: Vec<DeviceRule>,
    /// How much at once.
    pub limits: CallLimits,
}

impl HelveFile {
    /// The keys and tokens that stand in it.
    pub fn secrets(&self) -> impl Iterator<Item = SecretString> {
        let keys = self.models.values().filter_map(|model| model.api_key.clone());
        let password = self.store.as_deref().and_then(helve_core::secret::password_in_url).map(Into::into);
        keys.chain(self.devices.iter().filter_map(|device| device.token.clone())).chain(password)
    }
}

/// How people are asked about calls.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalSettings {
    /// How long a question waits for an answer, such as `7d`; left out, for ever.
    pub expire: Option<HumanDuration>,
    /// An address that is told of each new question, with a POST of its JSON.
    pub webhook: Option<String>,
}

/// A model by a name of your own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// How it is spoken to, such as `openai_compatible`.
    pub provider: String,
    /// Its address.
    pub base_url: Option<String>,
    /// The key; better from the environment: `${NAME}`.
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// The name by which the provider knows it.
    pub model: Option<String>,
    /// How many tokens it can read.
    pub context_tokens: Option<u32>,
    /// Whether it calls functions natively, where that is known.
    pub function_calling: Option<bool>,
    /// What it costs, in US dollars for a million tokens.
    pub price: Option<PriceEntry>,
    /// How long is waited for what.
    #[serde(default)]
    pub timeouts: Timeouts,
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceEntry {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
}

/// How long is waited for a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Until an answer begins, such as `5m`.
    pub first_byte: Option<HumanDuration>,
    /// Between two pieces of an answer.
    pub idle: Option<HumanDuration>,
}

/// Which agent answers a device.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceRule {
    /// Device ids; patterns are allowed.
    #[serde(rename = "match")]
    pub device: Pattern,
    /// The agent.
    pub agent: Option<String>,
    /// What the device must show.
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
}

/// How much at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimits {
    /// How many calls run at once.
    pub concurrency: Option<std::num::NonZeroU32>,
    /// How much of a result a model is told.
    pub result_bytes: Option<u64>,
}

/// `tool_sets/*.yaml`: a named group of tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetFile {
    /// Its name.
    pub name: String,
    /// What it is good for.
    #[serde(default)]
    pub description: String,
    /// Its tools, by name or pattern.
    #[serde(default)]
    pub tools: Vec<Pattern>,
    /// Other sets that it contains.
    #[serde(default)]
    pub tool_sets: Vec<String>,
}

/// `agents/*.yaml`: who answers, with which tools.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentFile {
    /// Its name.
    pub name: String,
    /// What it is good for; other agents read it.
    #[serde(default)]
    pub description: String,
    /// Its model, if not the project's.
    pub model: Option<String>,
    /// What it is told before anyone speaks.
    #[serde(default)]
    pub instructions: String,
    /// Tool sets by name.
    #[serde(default)]
    pub tool_sets: Vec<String>,
    /// Tools by name or pattern.
    #[serde(default)]
    pub tools: Vec<Pattern>,
    /// How it calls tools.
    #[serde(default)]
    pub output_strategy: OutputStrategy,
    /// What happens when a background call of its ends and nobody talks with it.
    #[serde(default)]
    pub on_result: OnResult,
    /// Agents that it may call.
    #[serde(default)]
    pub subagents: Vec<String>,
    /// When it stops.
    #[serde(default)]
    pub limits: AgentLimits,
    /// Tools by name or pattern that it is stricter with; it can never loosen.
    #[serde(default)]
    pub permissions: BTreeMap<String, Permission>,
}

/// What happens when a background call ends and nobody talks with its agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnResult {
    /// It is told when someone talks with it next.
    #[default]
    NextTurn,
    /// A worker lets it answer at once.
    Run,
}

/// When an agent stops.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentLimits {
    /// How often the model is asked.
    pub max_iterations: Option<u32>,
    /// How many calls it may make.
    pub max_calls: Option<u32>,
    /// How often the same call may give the same result.
    pub same_calls: Option<u32>,
    /// How many tokens it may use.
    pub max_tokens: Option<u64>,
    /// What it may cost, in US dollars.
    pub max_cost: Option<f64>,
    /// How long it may take.
    pub timeout: Option<HumanDuration>,
}
