//! What people write about command tools: the type of `tools/builtin/*.yaml`.

use helve_core::authored::{RulesFields, parameters_schema};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// One command tool, as in `tools/builtin/*.yaml`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CommandDefinition {
    /// The name by which agents call it.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// The program and its arguments, never through a shell. `{{ parameter }}` in an argument is replaced by the value.
    /// A program with a `/` in its name is found from the project's folder, others on the `PATH`.
    pub command: Vec<String>,
    /// What the program reads: the arguments as JSON, or nothing. JSON unless the command has templates.
    pub stdin: Option<Stdin>,
    /// What the program writes: text, JSON, or JSON where it is some (`auto`).
    #[serde(default)]
    pub format: OutputFormat,
    /// What arguments the tool takes.
    #[serde(default)]
    #[schemars(schema_with = "parameters_schema")]
    pub parameters: Option<Value>,
    /// JSON Schema that results must fit.
    pub output: Option<Value>,
    /// Environment variables: `NAME` is passed through, `NAME=value` is set. All others but `PATH` are cleared.
    #[serde(default)]
    pub env: Vec<String>,
    /// The folder it runs in, from the project's folder; that folder itself if left out.
    pub working_folder: Option<String>,
    /// How many bytes it may write to stdout, up to 64 MiB; 1 MiB if left out. More is a failure.
    pub max_bytes: Option<u64>,
    /// How calls run.
    #[serde(flatten)]
    pub rules: RulesFields,
}

/// What a program reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// The arguments as one JSON object.
    Json,
    /// Nothing.
    None,
}

/// What a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// JSON where the output is an object or array, text otherwise.
    #[default]
    Auto,
    /// Text, whatever it looks like.
    Text,
    /// JSON; anything else is a failure.
    Json,
}
