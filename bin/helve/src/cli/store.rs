//! Command-line options for runs, tasks and approvals in the store, and for the worker.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use helve::id::{ApprovalId, CallId, RunId};
use helve::store::{RunState, TaskState};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(flatten)]
    pub list: RunsList,
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
}

#[derive(Subcommand)]
pub enum RunsCommand {
    /// List runs, newest first (the default)
    List(RunsList),
    /// Show what happened in a run
    Show {
        /// Run id
        id: RunId,
    },
    /// Resume a run that waits or was interrupted
    Resume {
        /// Run id
        id: RunId,
    },
    /// Cancel a run and its open calls
    Cancel {
        /// Run id
        id: RunId,
    },
    /// Delete old runs, tasks, approvals and conversations that are over
    Prune {
        /// Minimum age, such as `30d`
        #[arg(long, value_name = "TIME", default_value = "30d")]
        older_than: humantime::Duration,
    },
}

#[derive(Args)]
pub struct RunsList {
    /// List runs in this state
    #[arg(long, value_name = "STATE", value_parser = states(RunState::ALL, RunState::name))]
    pub state: Option<RunState>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
}

/// Returns a parser for the names of states.
fn states<T: Copy + Send + Sync + 'static, const N: usize>(all: [T; N], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(name))
        .try_map(move |given| all.into_iter().find(|state| name(*state) == given).ok_or_else(|| format!("there is no state `{given}`")))
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Tasks {
    #[command(flatten)]
    pub list: TasksList,
    #[command(subcommand)]
    pub command: Option<TasksCommand>,
}

#[derive(Subcommand)]
pub enum TasksCommand {
    /// List background calls, newest first (the default)
    List(TasksList),
    /// Show a task with its arguments and result
    Show {
        /// Task id
        id: CallId,
    },
    /// Cancel a queued or running task
    Cancel {
        /// Task id
        id: CallId,
    },
    /// Approve a failed or cancelled task, and run it again as a new task
    Retry {
        /// Task id
        id: CallId,
    },
}

#[derive(Args)]
pub struct TasksList {
    /// List tasks in this state
    #[arg(long, value_name = "STATE", value_parser = states(TaskState::ALL, TaskState::name))]
    pub state: Option<TaskState>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
}

#[derive(Args)]
pub struct Approvals {
    #[command(subcommand)]
    pub command: Option<ApprovalsCommand>,
}

impl Approvals {
    /// Returns whether the command needs the project's tools: `--arguments` is checked against a tool's schema.
    pub fn needs_tools(&self) -> bool {
        matches!(self.command, Some(ApprovalsCommand::Approve { arguments: Some(_), .. }))
    }
}

#[derive(Subcommand)]
pub enum ApprovalsCommand {
    /// List pending approvals (the default)
    List {
        /// Include decided and expired approvals
        #[arg(long)]
        all: bool,
    },
    /// Show an approval with the exact arguments
    Show {
        /// Approval id
        id: ApprovalId,
    },
    /// Approve a call
    Approve {
        /// Approval id
        id: ApprovalId,
        /// Approve all calls to this tool in this conversation
        #[arg(long)]
        always: bool,
        /// Run the call with these arguments instead, or the input that the tool requests; a JSON object
        #[arg(long, value_name = "JSON")]
        arguments: Option<String>,
    },
    /// Deny a call
    Deny {
        /// Approval id
        id: ApprovalId,
        /// Reason, shown to the model
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

#[derive(Args)]
pub struct Worker {
    /// Exit when the queue is empty
    #[arg(long)]
    pub until_empty: bool,
    /// Maximum number of concurrent calls
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub concurrency: usize,
}
