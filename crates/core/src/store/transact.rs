//! The transactions, once for all engines that can run them over their rows.

use std::collections::HashMap;

use jiff::Timestamp;

use super::{
    Accepted, Approval, ApprovalState, Cancelling, Claim, Consent, ConversationRecord, DecisionRecord, DecisionResult, Finish, Finished,
    NewRun, NewTask, Progress, Recovered, Rows, RunCommit, RunRecord, RunState, Stop, StoreError, TakenRun, Task,
};
use crate::approval::Verdict;
use crate::call::ToolCall;
use crate::event::{Event, EventData};
use crate::ids::{ApprovalId, CallId, HolderId, RunId};

type Done<T> = Result<T, StoreError>;

/// Puts a task in the queue.
///
/// # Errors
/// Where the engine fails, as for all of these.
pub fn accept(rows: &mut dyn Rows, task: NewTask) -> Done<Accepted> {
    let task = Task::new(task, rows.now());
    if !rows.add_task(&task)? {
        return Ok(Accepted::Known);
    }
    tell(rows, task.caller.run, EventData::TaskAccepted { call_id: task.id, tool: task.tool })?;
    Ok(Accepted::New)
}

/// Gives tasks to a worker.
///
/// # Errors
/// See [`accept`].
pub fn claim(rows: &mut dyn Rows, claim: &Claim<'_>) -> Done<Vec<Task>> {
    let now = rows.now();
    let mut tasks = rows.due_tasks(claim.limit, claim.tools)?;
    for task in &mut tasks {
        task.claim(claim.holder, now);
        rows.put_task(task)?;
    }
    Ok(tasks)
}

/// Tells how far tasks are, and says what to stop.
///
/// # Errors
/// See [`accept`].
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

/// Takes what processes held that are gone. Whoever asks is not: it may have slept for longer than its lease, and knows it by now.
///
/// # Errors
/// See [`accept`].
pub fn recover(rows: &mut dyn Rows, asking: HolderId) -> Done<Recovered> {
    let (now, mut recovered) = (rows.now(), Recovered::default());
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
            keep_task(rows, &task)?;
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
            decided(rows, &approval, Verdict::Expired, "nobody")?;
            recovered.approvals += 1;
        } else if approval.asker.is_some() && is_gone(rows, approval.asker)? {
            approval.give_up(now);
            rows.put_approval(&approval)?;
            recovered.approvals += 1;
        }
    }
    Ok(recovered)
}

/// Records what came of tasks.
///
/// # Errors
/// See [`accept`].
pub fn finish(rows: &mut dyn Rows, ended: Vec<Finish>) -> Done<Vec<Finished>> {
    let now = rows.now();
    let one = |Finish { task, epoch, end }: Finish| -> Done<Finished> {
        let Some(mut task) = rows.task(task)? else { return Ok(Finished::Unknown) };
        let finished = task.finish(epoch, end, now);
        match finished {
            Finished::Recorded => keep_task(rows, &task)?,
            _ => rows.put_task(&task)?,
        }
        Ok(finished)
    };
    ended.into_iter().map(one).collect()
}

/// Cancels a task.
///
/// # Errors
/// Where there is none; see [`accept`].
pub fn cancel_task(rows: &mut dyn Rows, task: CallId) -> Done<Cancelling> {
    let mut task = rows.task(task)?.ok_or_else(|| StoreError::NotFound(format!("task {task}")))?;
    let cancelling = task.cancel(rows.now());
    match cancelling {
        Cancelling::TooLate(_) => {}
        Cancelling::Done | Cancelling::Told => keep_task(rows, &task)?,
    }
    Ok(cancelling)
}

/// Puts a copy of a task in the queue, under the id that it is given.
///
/// # Errors
/// Where there is none, or it did not end badly; see [`accept`].
pub fn retry_task(rows: &mut dyn Rows, task: CallId, copy: CallId) -> Done<Task> {
    let task = rows.task(task)?.ok_or_else(|| StoreError::NotFound(format!("task {task}")))?;
    let again = task.again(copy, rows.now());
    let again = again.ok_or_else(|| {
        StoreError::Conflict(format!("task {} is {}, and only what ended badly is tried again", task.id, task.state.name()))
    })?;
    if !rows.add_task(&again)? {
        return Err(StoreError::Conflict(format!("there is a task {} already", again.id)));
    }
    tell(rows, again.caller.run, EventData::TaskAccepted { call_id: again.id, tool: again.tool.clone() })?;
    Ok(again)
}

/// Stores a request. One that is known stays as it is: whoever asks again does not take an answer back.
///
/// # Errors
/// See [`accept`].
pub fn add_approval(rows: &mut dyn Rows, approval: &Approval) -> Done<()> {
    if rows.approval(approval.request.id)?.is_some() {
        return Ok(());
    }
    rows.put_approval(approval)
}

/// Answers a request.
///
/// # Errors
/// See [`accept`].
pub fn decide(rows: &mut dyn Rows, approval: ApprovalId, decision: DecisionRecord) -> Done<DecisionResult> {
    let Some(mut approval) = rows.approval(approval)? else { return Ok(DecisionResult::Unknown) };
    let was_open = approval.state == ApprovalState::Pending;
    if let Some(asker) = approval.asker.filter(|_| was_open)
        && rows.is_gone(asker)?
    {
        approval.give_up(rows.now());
        rows.put_approval(&approval)?;
        return Ok(DecisionResult::TooLate(Box::new(approval)));
    }
    let won = approval.decide(decision, rows.now());
    if !was_open {
        return Ok(DecisionResult::TooLate(Box::new(approval)));
    }
    rows.put_approval(&approval)?;
    match approval.decision.clone() {
        Some(reply) => decided(rows, &approval, reply.verdict, &reply.by)?,
        None => decided(rows, &approval, Verdict::Expired, "nobody")?,
    }
    Ok(if won { DecisionResult::Accepted(Box::new(approval)) } else { DecisionResult::TooLate(Box::new(approval)) })
}

/// What an answer sets in motion: its run can go on, or its call goes into the queue, or to the process that waits for it.
fn decided(rows: &mut dyn Rows, approval: &Approval, verdict: Verdict, by: &str) -> Done<()> {
    let request = &approval.request;
    let reply = approval.decision.as_ref();
    if let (Some(conversation), true) = (request.caller.conversation, approval.is_always())
        && let Some(mut record) = rows.conversation(conversation)?
    {
        record.allowed.insert(approval.definition);
        rows.put_conversation(&record)?;
    }
    let Some(run) = request.caller.run else {
        // The answer to a tool's request for input goes to its run or its caller. Only an approval queues a call.
        if verdict == Verdict::Approve && request.input.is_none() {
            let arguments = reply.and_then(|reply| reply.arguments.clone()).unwrap_or_else(|| request.call.arguments.clone());
            let call = ToolCall { arguments, ..request.call.clone() };
            let maker = approval.asker.filter(|_| !approval.background);
            let task = NewTask {
                tool: request.tool.clone(),
                caller: request.caller.clone(),
                sets: approval.sets.clone(),
                consent: Some(Consent::of_approval(request.id, &call, approval.definition)),
                // Whoever waits for it makes it; when they are gone, nobody needs it again.
                idempotent: approval.idempotent && maker.is_none(),
                priority: approval.priority,
                delay: approval.delay,
                ..NewTask::new(call, approval.definition)
            };
            accept(rows, task)?;
            if let Some(asker) = maker
                && let Some(mut task) = rows.task(request.call.id)?
            {
                task.claim(asker, rows.now());
                rows.put_task(&task)?;
            }
        }
        return Ok(());
    };
    let data = EventData::PermissionResult { approval_id: request.id, decision: verdict, by: by.to_owned() };
    tell(rows, Some(run), data)?;
    if let Some(mut record) = rows.run(run)?
        && record.state == RunState::Waiting
    {
        record.state = RunState::Ready;
        rows.put_run(&record)?;
    }
    Ok(())
}

/// Takes a run that no other process drives.
///
/// # Errors
/// Where there is none, it is over, or another process drives it; see [`accept`].
pub fn take_run(rows: &mut dyn Rows, run: RunId, holder: HolderId) -> Done<TakenRun> {
    let mut record = rows.run(run)?.ok_or_else(|| StoreError::NotFound(format!("run {run}")))?;
    let free = match (record.state, record.holder) {
        (RunState::Ready | RunState::Waiting, _) | (RunState::Running, None) => true,
        (RunState::Running, Some(other)) => other == holder || rows.is_gone(other)?,
        _ => return Err(StoreError::Conflict(format!("run {run} is over"))),
    };
    if !free {
        return Err(StoreError::Conflict(format!("another process drives run {run}")));
    }
    (record.state, record.holder, record.updated) = (RunState::Running, Some(holder), rows.now());
    record.epoch += 1;
    rows.put_run(&record)?;
    Ok(TakenRun { snapshot: rows.snapshot(run)?, record })
}

/// Gives back a run that its process does not drive any more.
///
/// # Errors
/// See [`accept`].
pub fn release_run(rows: &mut dyn Rows, run: RunId, holder: HolderId, epoch: u64) -> Done<()> {
    let Some(mut record) = rows.run(run)? else { return Ok(()) };
    if (record.state, record.holder, record.epoch) != (RunState::Running, Some(holder), epoch) {
        return Ok(());
    }
    (record.state, record.holder, record.updated) = (RunState::Ready, None, rows.now());
    rows.put_run(&record)
}

/// Records a step of a run, and gives the number of the last event before it.
///
/// # Errors
/// [`StoreError::Lost`] where another process drives the run by now; see [`accept`].
pub fn commit_run(rows: &mut dyn Rows, commit: RunCommit) -> Done<u64> {
    let now = rows.now();
    let mut record = match commit.begin {
        Some(new) => begin(rows, new, now)?,
        None => rows.run(commit.run)?.ok_or_else(|| StoreError::NotFound(format!("run {}", commit.run)))?,
    };
    if record.epoch != commit.epoch || record.state != RunState::Running {
        return Err(StoreError::Lost);
    }
    let mut conversation =
        rows.conversation(record.conversation_id)?.unwrap_or_else(|| ConversationRecord::new(record.conversation_id, now));
    if !commit.messages.is_empty() && conversation.said != commit.said {
        return Err(StoreError::Conflict("the conversation has gone on without this run".to_owned()));
    }
    let before = record.seq;
    for (time, data) in commit.events {
        record.seq += 1;
        rows.add_event(&event(&record, time, data))?;
    }
    (record.state, record.updated) = (commit.state, now);
    if commit.state != RunState::Running {
        record.holder = None;
    }
    for mut approval in commit.asked {
        approval.parent_run = record.parent_run_id;
        add_approval(rows, &approval)?;
    }
    if commit.state.is_over() {
        for mut open in rows.open_approvals(Some(record.id))? {
            open.give_up(now);
            rows.put_approval(&open)?;
        }
    }
    // Somebody may have answered before the run said that it waits.
    if commit.state == RunState::Waiting && rows.open_approvals(Some(record.id))?.is_empty() {
        record.state = RunState::Ready;
    }
    rows.put_run(&record)?;
    rows.put_snapshot(record.id, commit.snapshot.as_ref())?;
    for message in &commit.messages {
        rows.add_message(conversation.id, conversation.said, message)?;
        conversation.said += 1;
    }
    conversation.agent.clone_from(&record.agent);
    conversation.allowed.extend(commit.allowed);
    (conversation.usage, conversation.contexts, conversation.updated) = (commit.usage, commit.contexts, now);
    rows.put_conversation(&conversation)?;
    for id in commit.heard {
        hear(rows, id)?;
    }
    Ok(before)
}

/// Remembers that an agent was told of a result.
///
/// # Errors
/// See [`accept`].
pub fn hear(rows: &mut dyn Rows, task: CallId) -> Done<()> {
    let Some(mut task) = rows.task(task)? else { return Ok(()) };
    task.heard = true;
    rows.put_task(&task)
}

/// Marks a run that shall stop.
///
/// # Errors
/// Where there is none; see [`accept`].
pub fn cancel_run(rows: &mut dyn Rows, run: RunId) -> Done<RunRecord> {
    let mut record = rows.run(run)?.ok_or_else(|| StoreError::NotFound(format!("run {run}")))?;
    if !record.state.is_over() {
        record.cancelling = true;
        rows.put_run(&record)?;
    }
    Ok(record)
}

fn begin(rows: &mut dyn Rows, new: NewRun, now: Timestamp) -> Done<RunRecord> {
    if rows.run(new.id)?.is_some() {
        return Err(StoreError::Conflict(format!("run {} began before", new.id)));
    }
    Ok(RunRecord {
        id: new.id,
        conversation_id: new.conversation,
        parent_run_id: new.parent,
        agent: new.agent,
        model: new.model,
        input: new.input,
        state: RunState::Running,
        seq: 0,
        epoch: 1,
        holder: Some(new.holder),
        cancelling: false,
        created: now,
        updated: now,
    })
}

/// Keeps a task, and tells its run if it is over.
fn keep_task(rows: &mut dyn Rows, task: &Task) -> Done<()> {
    rows.put_task(task)?;
    match (&task.outcome, task.state.is_over()) {
        (Some(outcome), true) => {
            let data = EventData::TaskFinished { call_id: task.id, tool: task.tool.clone(), outcome: outcome.clone() };
            tell(rows, task.caller.run, data)
        }
        _ => Ok(()),
    }
}

/// Adds an event to a run from outside of it. A run that is not recorded is not told.
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
