//! Transactions of runs.

use jiff::Timestamp;

use super::approval::add_approval;
use super::{Done, event, task};
use crate::ids::{HolderId, RunId};
use crate::store::{ConversationRecord, NewRun, Rows, RunCommit, RunRecord, RunState, StoreError, TakenRun};

/// Claims a run. Returns [`StoreError::NotFound`] if the run does not exist, and [`StoreError::Conflict`] if the run has ended or another
/// process drives it.
pub fn take_run(rows: &mut dyn Rows, run: RunId, holder: HolderId) -> Done<TakenRun> {
    let mut record = find(rows, run)?;
    let free = match (record.state, record.holder) {
        (RunState::Ready | RunState::Waiting, _) | (RunState::Running, None) => true,
        (RunState::Running, Some(other)) => other == holder || rows.is_gone(other)?,
        _ => return Err(StoreError::Conflict(format!("run {run} has already ended"))),
    };
    if !free {
        return Err(StoreError::Conflict(format!("run {run} is driven by another process")));
    }
    (record.state, record.holder, record.updated) = (RunState::Running, Some(holder), rows.now());
    record.epoch += 1;
    rows.put_run(&record)?;
    Ok(TakenRun { snapshot: rows.snapshot(run)?, record })
}

/// Releases a run that its process no longer drives, so that the run can be resumed.
pub fn release_run(rows: &mut dyn Rows, run: RunId, holder: HolderId, epoch: u64) -> Done<()> {
    let Some(mut record) = rows.run(run)? else { return Ok(()) };
    if (record.state, record.holder, record.epoch) != (RunState::Running, Some(holder), epoch) {
        return Ok(());
    }
    (record.state, record.holder, record.updated) = (RunState::Ready, None, rows.now());
    rows.put_run(&record)
}

/// Stores a step of a run. Returns the number of the last event before the step, or [`StoreError::Lost`] if another process has claimed the
/// run.
pub fn commit_run(rows: &mut dyn Rows, commit: RunCommit) -> Done<u64> {
    let now = rows.now();
    let mut record = match commit.begin {
        Some(new) => begin(rows, new, now)?,
        None => find(rows, commit.run)?,
    };
    if record.epoch != commit.epoch || record.state != RunState::Running {
        return Err(StoreError::Lost);
    }
    let mut conversation =
        rows.conversation(record.conversation_id)?.unwrap_or_else(|| ConversationRecord::new(record.conversation_id, now));
    if !commit.messages.is_empty() && conversation.message_count != commit.message_count {
        return Err(StoreError::Conflict("the conversation has new messages from another run".to_owned()));
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
    for mut approval in commit.approvals {
        approval.parent_run = record.parent_run_id;
        add_approval(rows, &approval)?;
    }
    if commit.state.is_over() {
        for mut open in rows.open_approvals(Some(record.id))? {
            open.give_up(now);
            rows.put_approval(&open)?;
        }
    }
    // A decision may have arrived before the run was stored as waiting.
    if commit.state == RunState::Waiting && rows.open_approvals(Some(record.id))?.is_empty() {
        record.state = RunState::Ready;
    }
    rows.put_run(&record)?;
    rows.put_snapshot(record.id, commit.snapshot.as_ref())?;
    for message in &commit.messages {
        rows.add_message(conversation.id, conversation.message_count, message)?;
        conversation.message_count += 1;
    }
    conversation.agent.clone_from(&record.agent);
    conversation.allowed.extend(commit.allowed);
    (conversation.usage, conversation.contexts, conversation.updated) = (commit.usage, commit.contexts, now);
    rows.put_conversation(&conversation)?;
    for id in commit.read {
        task::mark_read(rows, id)?;
    }
    Ok(before)
}

/// Requests that the process that drives a run stop it. Returns [`StoreError::NotFound`] if the run does not exist.
pub fn cancel_run(rows: &mut dyn Rows, run: RunId) -> Done<RunRecord> {
    let mut record = find(rows, run)?;
    if !record.state.is_over() {
        record.cancelling = true;
        rows.put_run(&record)?;
    }
    Ok(record)
}

fn begin(rows: &mut dyn Rows, new: NewRun, now: Timestamp) -> Done<RunRecord> {
    if rows.run(new.id)?.is_some() {
        return Err(StoreError::Conflict(format!("run {} already exists", new.id)));
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

fn find(rows: &mut dyn Rows, run: RunId) -> Done<RunRecord> {
    rows.run(run)?.ok_or_else(|| StoreError::NotFound(format!("run {run}")))
}
