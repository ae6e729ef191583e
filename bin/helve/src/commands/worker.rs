//! `helve worker`: runs background calls.

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
    let record = workspace.record(global)?;
    workspace.settle();
    let helve = workspace.helve();
    let worker = helve::Worker::new(record.clone(), helve.executor().clone(), helve.catalogue().clone(), command.concurrency);
    workspace.block_on(async {
        let stop = CancellationToken::new();
        let interrupted = stop.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        let count = if command.until_empty {
            Some(worker.run_until_empty(stop).await?)
        } else {
            terminal::note(&styled(FAINT, "working; Ctrl-C ends it, and what runs then goes back to the queue where it may"));
            tokio::select! {
                () = worker.run(stop) => {}
                () = helve.follow() => {}
            }
            None
        };
        record.close().await?;
        if let Some(count) = count {
            let words = format!("{count} {} run", if count == 1 { "task" } else { "tasks" });
            if global.json { terminal::json(json!({"tasks_run": count})) } else { terminal::print(&words) }
        }
        Ok(ExitCode::SUCCESS)
    })
}
