//! The type of `tools/builtin/*.yaml`. Its comments are the descriptions in the JSON Schema.

use helve_core::authored::{RulesFields, parameters_schema};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// A tool that runs a program, defined in `tools/builtin/*.yaml`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CommandDefinition {
    /// Name of the tool.
    pub name: String,
    /// Display name of the tool.
    pub title: Option<String>,
    /// Description for the model.
    pub description: String,
    /// The program and its arguments; no shell is used. `{{ parameter }}` in an argument is replaced by the value of the parameter.
    /// A program name that contains `/` is relative to the project folder; other names are looked up in `PATH`.
    pub command: Vec<String>,
    /// Standard input of the program: `json` (the arguments of the call) or `none`. The default is `none` if the command contains
    /// templates, otherwise `json`.
    pub stdin: Option<Stdin>,
    /// Format of standard output: `text`, `json`, or `auto` (JSON if the output is a JSON object or array, otherwise text).
    #[serde(default)]
    pub format: OutputFormat,
    /// Parameters of the tool: a list, or a JSON Schema of an object.
    #[serde(default)]
    #[schemars(schema_with = "parameters_schema")]
    pub parameters: Option<Value>,
    /// JSON Schema of the results.
    pub output: Option<Value>,
    /// Environment variables: `NAME` is passed through, `NAME=value` is set. Of the other variables, only `PATH` is passed.
    #[serde(default)]
    pub env: Vec<String>,
    /// Working directory of the program, relative to the project folder. The project folder if omitted.
    pub working_folder: Option<String>,
    /// Maximum size of standard output in bytes, up to 64 MiB; 1 MiB if omitted. A call with a larger output fails.
    pub max_bytes: Option<u64>,
    /// Rules of the tool, such as permission and timeout.
    #[serde(flatten)]
    pub rules: RulesFields,
}

/// The standard input of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// The arguments as one JSON object.
    Json,
    /// No input.
    None,
}

/// The format of a program's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// JSON if the output is a JSON object or array, otherwise text.
    #[default]
    Auto,
    /// Text.
    Text,
    /// JSON. A call with any other output fails.
    Json,
}
