//! The contents of `tools/builtin/*.yaml`.

use helve_core::authored::{RulesFields, parameters_schema};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// A command tool, as in `tools/builtin/*.yaml`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CommandDefinition {
    /// Name of the tool.
    pub name: String,
    /// Title for people.
    pub title: Option<String>,
    /// Description for the model.
    pub description: String,
    /// The program and its arguments; no shell is used. `{{ parameter }}` in an argument is replaced by its value.
    /// A program name with a `/` is relative to the project folder; others are looked up in `PATH`.
    pub command: Vec<String>,
    /// Standard input: the arguments as JSON, or nothing. JSON by default, unless the command contains templates.
    pub stdin: Option<Stdin>,
    /// Standard output: `text`, `json`, or `auto` (JSON if it is a JSON object or array, else text).
    #[serde(default)]
    pub format: OutputFormat,
    /// Parameters of the tool.
    #[serde(default)]
    #[schemars(schema_with = "parameters_schema")]
    pub parameters: Option<Value>,
    /// JSON Schema of results.
    pub output: Option<Value>,
    /// Environment variables: `NAME` is passed through, `NAME=value` is set. Of all others only `PATH` is passed.
    #[serde(default)]
    pub env: Vec<String>,
    /// Working folder, relative to the project folder; the project folder itself if omitted.
    pub working_folder: Option<String>,
    /// Maximum size of standard output in bytes, up to 64 MiB; 1 MiB if omitted. A larger output fails the call.
    pub max_bytes: Option<u64>,
    /// How calls run.
    #[serde(flatten)]
    pub rules: RulesFields,
}

/// What a program reads from standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// The arguments as one JSON object.
    Json,
    /// Nothing.
    None,
}

/// What a program writes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// JSON if the output is a JSON object or array, else text.
    #[default]
    Auto,
    /// Text.
    Text,
    /// JSON; anything else fails the call.
    Json,
}
