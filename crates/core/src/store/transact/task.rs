//! Transactions of the queue.

use super::{Done, tell};
use crate::event::EventData;
use crate::ids::CallId;
use crate::store::{AcceptResult, CancelResult, Claim, Finish, FinishResult, NewTask, Rows, StoreError, Task};

/// Puts a task into the queue.
pub fn accept(rows: &mut dyn Rows, task: NewTask) -> Done<AcceptResult> {
    let task = Task::new(task, rows.now());
    Ok(if add(rows, &task)? { AcceptResult::New } else { AcceptResult::Known })
}

/// Claims tasks for a worker, best rank first.
pub fn claim(rows: &mut dyn Rows, claim: &Claim<'_>) -> Done<Vec<Task>> {
    let now = rows.now();
    let mut tasks = rows.due_tasks(claim.limit, claim.tools)?;
    for task in &mut tasks {
        task.claim(claim.holder, now);
        rows.put_task(task)?;
    }
    Ok(tasks)
}

/// Stores how attempts ended, and adds events to their runs.
pub fn finish(rows: &mut dyn Rows, ended: Vec<Finish>) -> Done<Vec<FinishResult>> {
    let now = rows.now();
    let one = |Finish { task, epoch, end }: Finish| -> Done<FinishResult> {
        let Some(mut task) = rows.task(task)? else { return Ok(FinishResult::Unknown) };
        let finished = task.finish(epoch, end, now);
        match finished {
            FinishResult::Recorded => put(rows, &task)?,
            _ => rows.put_task(&task)?,
        }
        Ok(finished)
    };
    ended.into_iter().map(one).collect()
}

/// Cancels a task, or requests that its worker stop it. Returns [`StoreError::NotFound`] if the task does not exist.
pub fn cancel_task(rows: &mut dyn Rows, task: CallId) -> Done<CancelResult> {
    let mut task = find(rows, task)?;
    let cancelling = task.cancel(rows.now());
    if !matches!(cancelling, CancelResult::TooLate(_)) {
        put(rows, &task)?;
    }
    Ok(cancelling)
}

/// Puts a copy of a task into the queue, under the id `copy`. Returns [`StoreError::NotFound`] if the task does not exist, and
/// [`StoreError::Conflict`] if it neither failed nor was cancelled.
pub fn retry_task(rows: &mut dyn Rows, task: CallId, copy: CallId) -> Done<Task> {
    let task = find(rows, task)?;
    let again = task.again(copy, rows.now()).ok_or_else(|| {
        StoreError::Conflict(format!("task {} is {}; only failed and cancelled tasks can be retried", task.id, task.state.name()))
    })?;
    if !add(rows, &again)? {
        return Err(StoreError::Conflict(format!("task {} already exists", again.id)));
    }
    Ok(again)
}

/// Marks a task's result as read by the agent of its conversation. Does nothing if the task does not exist.
pub fn mark_read(rows: &mut dyn Rows, task: CallId) -> Done<()> {
    let Some(mut task) = rows.task(task)? else { return Ok(()) };
    task.read = true;
    rows.put_task(&task)
}

fn find(rows: &mut dyn Rows, task: CallId) -> Done<Task> {
    rows.task(task)?.ok_or_else(|| StoreError::NotFound(format!("task {task}")))
}

/// Adds a task, and an event to its run. Returns false if there is already a task with this id.
fn add(rows: &mut dyn Rows, task: &Task) -> Done<bool> {
    let is_new = rows.add_task(task)?;
    if is_new {
        tell(rows, task.caller.run, EventData::TaskAccepted { call_id: task.id, tool: task.tool.clone() })?;
    }
    Ok(is_new)
}

/// Stores a task. If the task has ended, adds an event to its run.
pub(super) fn put(rows: &mut dyn Rows, task: &Task) -> Done<()> {
    rows.put_task(task)?;
    match (&task.outcome, task.state.is_over()) {
        (Some(outcome), true) => {
            let data = EventData::TaskFinished { call_id: task.id, tool: task.tool.clone(), outcome: outcome.clone() };
            tell(rows, task.caller.run, data)
        }
        _ => Ok(()),
    }
}
