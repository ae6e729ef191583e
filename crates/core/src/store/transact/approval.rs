//! Transactions of approval requests.

use super::{Done, task, tell};
use crate::approval::Verdict;
use crate::call::ToolCall;
use crate::event::EventData;
use crate::ids::ApprovalId;
use crate::store::{Approval, ApprovalState, Consent, DecisionRecord, DecisionResult, NewTask, Rows, RunState};

/// Stores a request. A request that is already stored does not change.
pub fn add_approval(rows: &mut dyn Rows, approval: &Approval) -> Done<()> {
    if rows.approval(approval.request.id)?.is_some() {
        return Ok(());
    }
    rows.put_approval(approval)
}

/// Decides a request. If the process that waits for the decision is gone, cancels the request instead.
pub fn decide(rows: &mut dyn Rows, approval: ApprovalId, decision: DecisionRecord) -> Done<DecisionResult> {
    let Some(mut approval) = rows.approval(approval)? else { return Ok(DecisionResult::Unknown) };
    if approval.state != ApprovalState::Pending {
        return Ok(DecisionResult::TooLate(Box::new(approval)));
    }
    if let Some(asker) = approval.asker
        && rows.is_gone(asker)?
    {
        approval.give_up(rows.now());
        rows.put_approval(&approval)?;
        return Ok(DecisionResult::TooLate(Box::new(approval)));
    }
    let won = approval.decide(decision, rows.now());
    rows.put_approval(&approval)?;
    match approval.decision.clone() {
        Some(decision) => decided(rows, &approval, decision.verdict, &decision.by)?,
        None => decided(rows, &approval, Verdict::Expired, "nobody")?,
    }
    Ok(if won { DecisionResult::Accepted(Box::new(approval)) } else { DecisionResult::TooLate(Box::new(approval)) })
}

/// Carries out a decision: makes the run ready, or queues the call. A process that waits for the decision claims the call at once.
pub(super) fn decided(rows: &mut dyn Rows, approval: &Approval, verdict: Verdict, by: &str) -> Done<()> {
    let request = &approval.request;
    if let (Some(conversation), true) = (request.caller.conversation, approval.is_always())
        && let Some(mut record) = rows.conversation(conversation)?
    {
        record.allowed.insert(approval.definition);
        rows.put_conversation(&record)?;
    }
    let Some(run) = request.caller.run else {
        // The response to an input request goes to the run or the caller. Only an approval queues a call.
        return if verdict == Verdict::Approve && request.input.is_none() { queue_call(rows, approval) } else { Ok(()) };
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

/// Puts an approved call into the queue. If a process waits to run the call itself, that process claims the task at once.
fn queue_call(rows: &mut dyn Rows, approval: &Approval) -> Done<()> {
    let request = &approval.request;
    let edited = approval.decision.as_ref().and_then(|decision| decision.arguments.clone());
    let call = ToolCall { arguments: edited.unwrap_or_else(|| request.call.arguments.clone()), ..request.call.clone() };
    let maker = approval.asker.filter(|_| !approval.background);
    let task = NewTask {
        tool: request.tool.clone(),
        caller: request.caller.clone(),
        sets: approval.sets.clone(),
        consent: Some(Consent::of_approval(request.id, &call, approval.definition)),
        // If the waiting process is gone, so is its caller, and the result of a retry would have no reader.
        idempotent: approval.idempotent && maker.is_none(),
        priority: approval.priority,
        delay: approval.delay,
        ..NewTask::new(call, approval.definition)
    };
    task::accept(rows, task)?;
    if let Some(asker) = maker
        && let Some(mut task) = rows.task(request.call.id)?
    {
        task.claim(asker, rows.now());
        rows.put_task(&task)?;
    }
    Ok(())
}
