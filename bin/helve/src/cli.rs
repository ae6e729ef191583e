//! The command line: commands and their options.

pub mod mcp;
pub mod store;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use helve::agent::AgentChoice;
use helve::model::ModelChoice;
use serde_json::Value;

use crate::terminal;

/// Tools for LLM agents: one catalogue, one pipeline for all calls.
#[derive(Parser)]
#[command(name = "helve", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options of every command.
#[derive(Args)]
pub struct Global {
    /// Project folder
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub folder: PathBuf,
    /// Model: `provider/model`, a URL, a name from helve.yaml, or `replay:FILE`
    #[arg(long, value_name = "SPEC", global = true)]
    pub model: Option<String>,
    /// Use only models on this machine
    #[arg(long, global = true)]
    pub local: bool,
    /// Record the model's responses to FILE; `--model replay:FILE` replays them
    #[arg(long, value_name = "FILE", global = true)]
    pub record: Option<PathBuf>,
    /// Store for runs, tasks and approvals: `sqlite:FILE` or `postgres://…`
    #[arg(long, value_name = "URL", global = true)]
    pub store: Option<String>,
    /// Print JSON on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more to stderr; repeat for more detail
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
}

impl Global {
    /// Returns the model and store from the command line, which override the project's.
    pub fn agent_choice(&self) -> AgentChoice {
        let model = ModelChoice { spec: self.model.clone(), local_only: self.local, record: self.record.clone() };
        AgentChoice { model, store: self.store.clone() }
    }

    /// Prints a result on stdout: `document` with `--json`, otherwise `text`.
    pub fn print(&self, document: Value, text: &str) {
        if self.json { terminal::json(document) } else { terminal::print(text) }
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Chat with an agent (the default)
    Chat(Chat),
    /// Run an agent on one prompt
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Try Helve without an API key: a recorded model, real tools
    Demo,
    /// List available models, or probe what one supports
    Models(Models),
    /// List, describe, call and check tools
    Tools(Tools),
    /// List, show, resume, cancel and prune runs
    Runs(store::Runs),
    /// List, show, cancel and retry background calls
    Tasks(store::Tasks),
    /// List pending approvals, and approve or deny them
    Approvals(store::Approvals),
    /// Run background calls, and resume runs that are ready
    Worker(store::Worker),
    /// Copy the store to a new file
    Backup {
        /// New file
        file: PathBuf,
    },
    /// Use MCP servers, and serve your tools to MCP clients
    Mcp(mcp::Mcp),
    /// List tool sets and their tools
    Sets,
    /// List agents and the tools they may use
    Agents,
    /// Create a sample project
    Init {
        /// Folder, created if it does not exist; defaults to the project folder
        directory: Option<PathBuf>,
    },
    /// Show what this folder would run, and trust it
    Trust(Trust),
    /// Find tool calls in a model's text, read from stdin
    #[command(after_help = PARSE_HELP)]
    Parse(Parse),
    /// Print the instructions for models that write tool calls as text
    Prompt(Prompt),
    /// Print the JSON Schema of a project file, for editors
    Schema {
        /// Kind of file; lists all kinds if omitted
        kind: Option<String>,
    },
    /// Print a shell completion script
    Completions {
        /// Shell
        shell: Shell,
    },
}

const PARSE_HELP: &str = "\
Examples:
  helve parse --dialect hermes < answer.txt
  helve parse --tools tools.json --mode strict < answer.txt
  helve parse --formats

Each item has a `type` (text, reasoning, call, malformed, markup) and its `span` in bytes.
With --batch, each line of stdin is {\"id\", \"text\", \"dialect\", \"mode\", \"tools\", \"chunk\"}, and each line of
stdout is {\"id\", \"items\"}.";

#[derive(Args, Default)]
pub struct Chat {
    /// Agent; defaults to `agent:` in helve.yaml, the project's only agent, or an agent with all tools
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Continue the last conversation in this folder
    #[arg(long)]
    pub r#continue: bool,
}

#[derive(Args)]
pub struct Models {
    #[command(subcommand)]
    pub command: Option<ModelsCommand>,
}

#[derive(Subcommand)]
pub enum ModelsCommand {
    /// Test whether a model supports function calling, and remember the result
    Probe {
        /// Model; defaults to the one that `helve run` would use
        name: Option<String>,
    },
}

#[derive(Args)]
pub struct Run {
    /// Prompt; `-` reads it from stdin
    #[arg(required_unless_present = "resume", conflicts_with = "resume", value_name = "PROMPT")]
    pub prompt: Vec<String>,
    /// Resume a run that waits or was interrupted
    #[arg(long, value_name = "RUN")]
    pub resume: Option<helve::id::RunId>,
    /// Agent; defaults to `agent:` in helve.yaml, the project's only agent, or an agent with all tools
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// How to decide calls that need approval
    #[arg(long, value_enum, default_value_t = Approve::Ask)]
    pub approve: Approve,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Approve {
    /// Ask on the terminal; without a terminal, the run waits
    Ask,
    /// Approve all
    Yes,
    /// Deny all
    No,
}

const RUN_HELP: &str = "\
Examples:
  helve run \"What is 17% of 2340?\"
  helve run --agent analyst --json \"Summarize sales.csv\"
  cat notes.txt | helve run -

Exit status: 0 answered, 1 failed, 2 usage error, 3 waiting for approval";

#[derive(Args)]
pub struct Parse {
    /// Format of the text; `auto` detects it
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub dialect: String,
    /// Repair common mistakes, or accept only the format's grammar
    #[arg(long, value_enum, default_value_t = ParseMode::Lenient)]
    pub mode: ParseMode,
    /// JSON file with the tools that the model was offered
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    /// Feed the text in chunks of N characters, or in random chunks with seed N for -N
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub chunk: i64,
    /// Read many texts, one JSON object per line
    #[arg(long)]
    pub batch: bool,
    /// List all formats
    #[arg(long)]
    pub formats: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ParseMode {
    /// Repair common mistakes and name each repair
    Lenient,
    /// Accept only the format's grammar
    Strict,
}

#[derive(Args)]
pub struct Prompt {
    /// Format of the calls
    #[arg(long, value_enum, default_value_t = PromptDialect::Json)]
    pub dialect: PromptDialect,
    /// Agent whose tools are listed; defaults to `agent:` in helve.yaml, the project's only agent, or all tools
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Language of the instructions
    #[arg(long, value_enum, default_value_t = PromptLanguage::En)]
    pub language: PromptLanguage,
    /// One line per tool; the default for more than 20 tools
    #[arg(long)]
    pub compact: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PromptDialect {
    /// One JSON object for all calls
    Json,
    /// One XML element per call, values in CDATA
    Xml,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PromptLanguage {
    /// English
    En,
    /// Simplified Chinese
    Zh,
}

#[derive(Args)]
pub struct Tools {
    #[command(subcommand)]
    pub command: Option<ToolsCommand>,
}

#[derive(Subcommand)]
pub enum ToolsCommand {
    /// List all tools with their source, permission and mode (the default)
    List,
    /// Describe one tool: parameters, rules and an example
    Show {
        /// Name of the tool
        name: String,
    },
    /// Call one tool, with validation, permissions and limits
    #[command(after_help = CALL_HELP)]
    Call(Call),
    /// Load the project and report errors and warnings
    Check,
}

#[derive(Args)]
pub struct Call {
    /// Name of the tool
    pub name: String,
    /// One JSON object, `key=value` pairs, or `-` to read JSON from stdin
    #[arg(value_name = "JSON|KEY=VALUE")]
    pub arguments: Vec<String>,
    /// Approve the call if it needs approval
    #[arg(short, long)]
    pub yes: bool,
    /// Wait until a background call ends
    #[arg(long)]
    pub wait: bool,
}

#[derive(Args)]
pub struct Trust {
    /// Trust without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Revoke trust
    #[arg(long, conflicts_with = "yes")]
    pub revoke: bool,
}

const CALL_HELP: &str = "\
Examples:
  helve tools call calculate 'expression=2^64 + 1'
  helve tools call get_time '{\"timezone\": \"Asia/Shanghai\"}'
  echo '{\"expression\": \"1+1\"}' | helve tools call calculate -

Exit status: 0 done, 1 failed, 2 usage error, 3 waiting for approval";
