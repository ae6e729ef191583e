//! `helve worker`: runs background calls, goes on with runs whose requests were answered or whose process ended, and lets agents
//! answer to results.

use std::process::ExitCode;

use helve::CancellationToken;
use serde_json::json;

use crate::cli::Global;
use crate::cli::records::Worker;
use crate::failure::Failure;
use crate::terminal::{self, FAINT, styled};
use crate::workspace::Workspace;

/// Works until it is stopped, or until nothing is left.
pub fn run(command: &Worker, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    super::show_errors(workspace);
    workspace.settle();
    workspace.block_on(async {
        let worker = workspace.helve().worker(command.concurrency, global.agent_choice()).await;
        let worker = worker.map_err(|error| Failure::new("storage", &error).hint(&error.hint))?;
        let stop = CancellationToken::new();
        let interrupted = stop.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        if !command.until_empty {
            terminal::note(&styled(FAINT, "working; Ctrl-C ends it, and what runs then goes back to the queue where it may"));
            worker.run(stop).await;
            return Ok(ExitCode::SUCCESS);
        }
        let done = worker.run_until_empty(stop).await?;
        if global.json {
            terminal::json(json!({"tasks_run": done.tasks, "runs_resumed": done.runs}));
        } else {
            let of = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
            terminal::print(&format!("{} run, {} resumed", of(done.tasks, "task"), of(done.runs, "run")));
        }
        Ok(ExitCode::SUCCESS)
    })
}
