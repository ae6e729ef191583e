//! What can be typed: commands and their options.

pub mod mcp;
pub mod records;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use helve::agent::AgentChoice;
use helve::model::ModelChoice;

/// Tools for LLM agents: one catalogue, one governed call path.
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
    /// The project's folder
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub folder: PathBuf,
    /// The model: `provider/model`, an address, a name from helve.yaml, or `replay:FILE`
    #[arg(long, value_name = "SPEC", global = true)]
    pub model: Option<String>,
    /// Reach models on this machine only
    #[arg(long, global = true)]
    pub local: bool,
    /// Record what the model says, to be replayed later
    #[arg(long, value_name = "FILE", global = true)]
    pub record: Option<PathBuf>,
    /// The record: `sqlite:FILE` or `postgres://…`
    #[arg(long, value_name = "URL", global = true)]
    pub store: Option<String>,
    /// Print JSON on stdout, for programs
    #[arg(long, global = true)]
    pub json: bool,
    /// Say more on stderr; twice for even more
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
}

impl Global {
    /// What is chosen for agents instead of what the project says.
    pub fn agent_choice(&self) -> AgentChoice {
        let model = ModelChoice { spec: self.model.clone(), local_only: self.local, record: self.record.clone() };
        AgentChoice { model, store: self.store.clone() }
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Talk with an agent (the default)
    Chat(Chat),
    /// Answer one request
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// A first look, without a key: a recorded model, real tools
    Demo,
    /// List the models that can be used, or find out what one can do
    Models(Models),
    /// List, describe, call and check tools
    Tools(Tools),
    /// List runs, show what happened in one, go on with it
    Runs(records::Runs),
    /// List background calls, show, cancel or repeat one
    Tasks(records::Tasks),
    /// List requests that wait for a person, and answer them
    Approvals(records::Approvals),
    /// Run background calls, and go on with runs that were answered
    Worker(records::Worker),
    /// Copy the record into a new file
    Backup {
        /// The file
        file: PathBuf,
    },
    /// Use MCP servers, and serve the catalogue to MCP clients
    Mcp(mcp::Mcp),
    /// List tool sets and what is in them
    Sets,
    /// List agents and the tools they may use
    Agents,
    /// Write a sample project that teaches
    Init {
        /// The folder, made if it is not there; left out, the project's folder
        directory: Option<PathBuf>,
    },
    /// Trust this folder to run what it describes
    Trust(Trust),
    /// Find the tool calls in a model's text, read from stdin
    #[command(after_help = PARSE_HELP)]
    Parse(Parse),
    /// Print what a model is told that calls tools in plain text
    Prompt(Prompt),
    /// Print the JSON Schema of a project's file, for editors
    Schema {
        /// The file's kind; left out, all kinds are listed
        kind: Option<String>,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
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
stdout {\"id\", \"items\"}.";

#[derive(Args, Default)]
pub struct Chat {
    /// The agent; left out, the project's own choice, its only agent, or one with all tools
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Go on with the last conversation in this folder
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
    /// Ask a model to call a function, and remember how calls are best carried
    Probe {
        /// The model; left out, the one that would answer
        name: Option<String>,
    },
}

#[derive(Args)]
pub struct Run {
    /// What to answer; `-` reads it from stdin
    #[arg(required_unless_present = "resume", conflicts_with = "resume", value_name = "PROMPT")]
    pub prompt: Vec<String>,
    /// Go on with a run that waited, or whose process ended
    #[arg(long, value_name = "RUN")]
    pub resume: Option<helve::id::RunId>,
    /// The agent; left out, the project's own choice, its only agent, or one with all tools
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// What happens with calls that must be confirmed
    #[arg(long, value_enum, default_value_t = Approve::Ask)]
    pub approve: Approve,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Approve {
    /// Ask at the terminal; without one, wait
    Ask,
    /// Approve them all
    Yes,
    /// Deny them all
    No,
}

const RUN_HELP: &str = "\
Examples:
  helve run \"What is 17% of 2340?\"
  helve run --agent analyst --json \"Look into sales.csv\"
  cat notes.txt | helve run -

Exit status: 0 answered, 1 failed, 2 wrong usage, 3 waiting for approval";

#[derive(Args)]
pub struct Parse {
    /// The format the text is in; `auto` finds out
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub dialect: String,
    /// Mend common mistakes, or take only what the format allows
    #[arg(long, value_enum, default_value_t = ParseMode::Lenient)]
    pub mode: ParseMode,
    /// A JSON file with the tools the model was offered
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    /// Read the text in pieces: N characters each, or -N for random ones
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub chunk: i64,
    /// Read many texts, one JSON object a line
    #[arg(long)]
    pub batch: bool,
    /// List the formats
    #[arg(long)]
    pub formats: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ParseMode {
    /// Mend common mistakes and name each repair
    Lenient,
    /// Only the format's grammar
    Strict,
}

#[derive(Args)]
pub struct Prompt {
    /// How the model writes its calls
    #[arg(long, value_enum, default_value_t = PromptDialect::Json)]
    pub dialect: PromptDialect,
    /// The agent whose tools they are; left out, the project's own choice, its only agent, or all tools
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The language of the instructions
    #[arg(long, value_enum, default_value_t = PromptLanguage::En)]
    pub language: PromptLanguage,
    /// One line for each tool, as it is anyway for more than 20
    #[arg(long)]
    pub compact: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PromptDialect {
    /// One JSON object with all calls
    Json,
    /// An element for each call, with every value in CDATA
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
    /// Describe one tool: parameters, rules, an example
    Show {
        /// The tool's name
        name: String,
    },
    /// Call one tool through validation, permission and all limits
    #[command(after_help = CALL_HELP)]
    Call(Call),
    /// Load everything and say what is wrong
    Check,
}

#[derive(Args)]
pub struct Call {
    /// The tool's name
    pub name: String,
    /// One JSON object, `key=value` pairs, or `-` to read JSON from stdin
    #[arg(value_name = "JSON|KEY=VALUE")]
    pub arguments: Vec<String>,
    /// Approve the call if it must be confirmed
    #[arg(short, long)]
    pub yes: bool,
    /// Wait for the end of a background call
    #[arg(long)]
    pub wait: bool,
}

#[derive(Args)]
pub struct Trust {
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Trust it no longer
    #[arg(long, conflicts_with = "yes")]
    pub revoke: bool,
}

const CALL_HELP: &str = "\
Examples:
  helve tools call calculate 'expression=2^64 + 1'
  helve tools call get_time '{\"timezone\": \"Asia/Shanghai\"}'
  echo '{\"expression\": \"1+1\"}' | helve tools call calculate -

Exit status: 0 done, 1 failed, 2 wrong usage, 3 waiting for approval";
