//! `helve worker`: runs background calls, resumes runs that are ready, and runs agents again when results arrive.

use std::process::ExitCode;

use helve::CancellationToken;
use serde_json::json;

use crate::cli::Global;
use crate::cli::store::Worker;
use crate::failure::Failure;
use crate::terminal::{self, counted};
use crate::workspace::Workspace;

/// Works until Ctrl-C, or until no work is left with `--until-empty`.
pub fn run(command: &Worker, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    super::show_errors(workspace);
    workspace.settle();
    workspace.block_on(async {
        let worker = workspace.helve().worker(command.concurrency, global.agent_choice()).await?;
        let stop = CancellationToken::new();
        let interrupted = stop.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        if !command.until_empty {
            terminal::note_faintly("Working. Ctrl-C stops; unfinished idempotent tasks return to the queue.");
            worker.run(stop).await;
            return Ok(ExitCode::SUCCESS);
        }
        let done = worker.run_until_empty(stop).await?;
        let text = format!("{} executed, {} resumed", counted(done.tasks, "task"), counted(done.runs, "run"));
        global.print(json!({"tasks_run": done.tasks, "runs_resumed": done.runs}), &text);
        Ok(ExitCode::SUCCESS)
    })
}
