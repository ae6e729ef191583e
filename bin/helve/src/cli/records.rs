//! What can be typed about the record: runs, tasks and approvals.

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
        /// The run
        id: RunId,
    },
    /// Go on with a run that waited, or whose process ended
    Resume {
        /// The run
        id: RunId,
    },
    /// Stop a run; every call that was announced is answered
    Cancel {
        /// The run
        id: RunId,
    },
    /// Forget runs, tasks, answered requests and conversations that ended long ago
    Prune {
        /// How long ago, such as `30d`
        #[arg(long, value_name = "TIME", default_value = "30d")]
        older_than: humantime::Duration,
    },
}

#[derive(Args)]
pub struct RunsList {
    /// Only those that are so far
    #[arg(long, value_name = "STATE", value_parser = states(RunState::ALL, RunState::name))]
    pub state: Option<RunState>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
}

/// The names of states, and what they stand for.
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
    /// Show one, with its arguments and what came of it
    Show {
        /// The task
        id: CallId,
    },
    /// Cancel one that waits or runs
    Cancel {
        /// The task
        id: CallId,
    },
    /// Try one again that ended badly, as a new task
    Retry {
        /// The task
        id: CallId,
    },
}

#[derive(Args)]
pub struct TasksList {
    /// Only those that are so far
    #[arg(long, value_name = "STATE", value_parser = states(TaskState::ALL, TaskState::name))]
    pub state: Option<TaskState>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
}

#[derive(Args)]
pub struct Approvals {
    #[command(subcommand)]
    pub command: Option<ApprovalsCommand>,
}

impl Approvals {
    /// Whether the tools must be known: only what is written instead of a call's arguments is compared with one.
    pub fn needs_tools(&self) -> bool {
        matches!(self.command, Some(ApprovalsCommand::Approve { arguments: Some(_), .. }))
    }
}

#[derive(Subcommand)]
pub enum ApprovalsCommand {
    /// List open requests (the default)
    List {
        /// Also those that were answered
        #[arg(long)]
        all: bool,
    },
    /// Show one, with the exact arguments
    Show {
        /// The request
        id: ApprovalId,
    },
    /// Let a call run
    Approve {
        /// The request
        id: ApprovalId,
        /// Do not ask again for this tool in this conversation
        #[arg(long)]
        always: bool,
        /// Run it with these arguments instead, or answer what its tool asks, in one JSON object
        #[arg(long, value_name = "JSON")]
        arguments: Option<String>,
    },
    /// Do not let it run
    Deny {
        /// The request
        id: ApprovalId,
        /// A word to the model
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

#[derive(Args)]
pub struct Worker {
    /// End when nothing is left to do
    #[arg(long)]
    pub until_empty: bool,
    /// Run so many calls at once
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub concurrency: usize,
}
