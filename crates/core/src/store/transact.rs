//! The transactions of a store, written once for every engine that implements [`Rows`].
//!
//! Each function returns the engine's error if the engine fails.
#![expect(clippy::missing_errors_doc, reason = "said once for all functions of this module")]

mod approval;
mod run;
mod task;

use std::collections::HashMap;

use jiff::Timestamp;

pub use self::approval::{add_approval, decide};
pub use self::run::{cancel_run, commit_run, release_run, take_run};
pub use self::task::{accept, cancel_task, claim, finish, mark_read, retry_task};
use super::{Progress, RecoveryReport, Rows, RunRecord, RunState, Stop, StoreError};
use crate::approval::Verdict;
use crate::event::{Event, EventData};
use crate::ids::{CallId, HolderId, RunId};

type Done<T> = Result<T, StoreError>;

/// Stores the progress of a process's tasks. Returns the tasks and runs that the process must stop.
pub fn progress(rows: &mut dyn Rows, holder: HolderId, progress: &[(CallId, Progress)]) -> Done<Stop> {
    for (id, progress) in progress {
        if let Some(mut task) = rows.task(*id)?
            && task.holder == Some(holder)
        {
            task.progress = Some(progress.clone());
            rows.put_task(&task)?;
        }
    }
    let tasks = rows.running_tasks()?.into_iter().filter(|task| task.holder == Some(holder) && task.cancelling).map(|task| task.id);
    let tasks = tasks.collect();
    let runs = rows.running_runs()?.into_iter().filter(|run| run.holder == Some(holder) && run.cancelling).map(|run| run.id).collect();
    Ok(Stop { tasks, runs })
}

/// Takes over the tasks and runs of processes whose lease has expired, and expires approval requests. The process `asking` counts as alive,
/// because it may have been suspended for longer than its lease.
pub fn recover(rows: &mut dyn Rows, asking: HolderId) -> Done<RecoveryReport> {
    let (now, mut recovered) = (rows.now(), RecoveryReport::default());
    let mut gone = HashMap::new();
    let mut is_gone = |rows: &mut dyn Rows, holder: Option<HolderId>| match holder {
        None => Ok(true),
        Some(holder) if holder == asking => Ok(false),
        Some(holder) => match gone.get(&holder) {
            Some(known) => Ok(*known),
            None => rows.is_gone(holder).inspect(|found| {
                gone.insert(holder, *found);
            }),
        },
    };
    for mut task in rows.running_tasks()? {
        if is_gone(rows, task.holder)? {
            task.orphan(now);
            task::put(rows, &task)?;
            recovered.tasks += 1;
        }
    }
    for mut run in rows.running_runs()? {
        if is_gone(rows, run.holder)? {
            (run.state, run.holder, run.updated) = (RunState::Ready, None, now);
            rows.put_run(&run)?;
            recovered.runs += 1;
        }
    }
    for mut approval in rows.open_approvals(None)? {
        if approval.expire(now) {
            rows.put_approval(&approval)?;
            approval::decided(rows, &approval, Verdict::Expired, "nobody")?;
            recovered.approvals += 1;
        } else if approval.asker.is_some() && is_gone(rows, approval.asker)? {
            approval.give_up(now);
            rows.put_approval(&approval)?;
            recovered.approvals += 1;
        }
    }
    Ok(recovered)
}

/// Adds an event to a run on behalf of a task or an approval request. Does nothing if the run is not stored.
fn tell(rows: &mut dyn Rows, run: Option<RunId>, data: EventData) -> Done<()> {
    let Some(run) = run else { return Ok(()) };
    let Some(mut record) = rows.run(run)? else { return Ok(()) };
    record.seq += 1;
    rows.put_run(&record)?;
    rows.add_event(&event(&record, rows.now(), data))
}

fn event(record: &RunRecord, time: Timestamp, data: EventData) -> Event {
    Event {
        run_id: record.id,
        conversation_id: Some(record.conversation_id),
        parent_run_id: record.parent_run_id,
        seq: record.seq,
        time,
        data,
    }
}
