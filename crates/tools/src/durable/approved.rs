//! Calls whose caller waits in this process while a person decides, or while a worker runs them.
//!
//! This process runs an approved call itself, with the full context of the call, such as the connection to the caller. If the caller goes
//! away before the end, the request is withdrawn or the call is cancelled.

use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{Approval, ApprovalState, DecisionRecord, DecisionResult, Finish, Task, TaskEnd};
use helve_core::{
    ApprovalId, ApprovalRequest, Backoff, CallContext, CallId, Denial, ErrorKind, Outcome, Permission, Status, StoreError, ToolCall,
    ToolError, Verdict,
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::call::CallState;
use crate::durable::worker::record;
use crate::durable::{LeaseGuard, StoreHandle};
use crate::executor::{Executor, Prepared};
use crate::toolkit::Toolkit;

/// First delay between attempts to withdraw a request.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// Maximum delay between attempts to withdraw a request.
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// Maximum number of attempts to withdraw a request: about a minute in total.
const WITHDRAW_ATTEMPTS: usize = 8;

/// An approval request that the caller waits for. Dropping it while it is open withdraws the request.
struct OpenRequest {
    store: StoreHandle,
    id: ApprovalId,
    call: CallId,
    caller: Arc<str>,
    open: bool,
}

impl OpenRequest {
    fn withdraw(&self) -> impl Future<Output = ()> + use<> {
        let (store, id, call, by) = (self.store.clone(), self.id, self.call, self.caller.clone());
        let reason = Some("the caller abandoned the call".to_owned());
        let denial = DecisionRecord { verdict: Verdict::Deny, by, reason, always: false, arguments: None };
        async move {
            let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
            for _ in 0..WITHDRAW_ATTEMPTS {
                match withdraw(&store, id, call, &denial).await {
                    Ok(true) => return,
                    // The request may still be on its way to the store.
                    Ok(false) => {}
                    Err(error) => tracing::warn!(%error, %call, "could not withdraw an abandoned call; retrying"),
                }
                tokio::time::sleep(backoff.delay()).await;
            }
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if self.open
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(self.withdraw());
        }
    }
}

/// Denies a request, or cancels the call if a person has already approved it. Returns false if the store does not know the request.
async fn withdraw(store: &StoreHandle, request: ApprovalId, call: CallId, denial: &DecisionRecord) -> Result<bool, StoreError> {
    match store.decide(request, denial.clone()).await? {
        DecisionResult::TooLate(approval) if approval.state == ApprovalState::Approved => {}
        DecisionResult::Unknown => return Ok(false),
        _ => return Ok(true),
    }
    match store.task(call).await? {
        Some(task) if task.holder == Some(store.holder()) => drop(store.finish(vec![ended(&task, cancelled(&task))]).await?),
        Some(_) => drop(store.cancel_task(call).await?),
        None => {}
    }
    Ok(true)
}

/// A call that a person approved. Dropping it before its end is recorded ends the call with its last outcome, or as cancelled.
pub struct ApprovedCall {
    request: OpenRequest,
    task: Box<Task>,
    cancel: CancellationToken,
    /// The lease of a call that runs in this process; `None` if a worker runs the call.
    lease: Option<LeaseGuard>,
    /// The outcome to record on drop; `None` if it is already recorded, or a worker records it.
    unrecorded: Option<Outcome>,
}

impl ApprovedCall {
    fn new(mut request: OpenRequest, task: Task, cx: &CallContext) -> Self {
        let cancel = cx.cancellation().child_token();
        let is_local = task.holder == Some(request.store.holder());
        request.open = !is_local;
        let lease = is_local.then(|| request.store.lease_task(task.id, cancel.clone()));
        let unrecorded = is_local.then(|| cancelled(&task));
        Self { request, task: Box::new(task), cancel, lease, unrecorded }
    }

    /// Returns the call, with the arguments that the person approved.
    #[must_use]
    pub fn call(&self) -> &ToolCall {
        &self.task.call
    }

    /// Returns the token that is cancelled if this or another process cancels the call.
    #[must_use]
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Keeps the call open although it has an outcome, because the caller will run it again. If the caller does not, the call ends as
    /// cancelled.
    #[must_use]
    pub fn kept_open(mut self) -> Self {
        self.unrecorded = Some(cancelled(&self.task));
        self
    }

    /// Records the outcome of the call.
    pub async fn end(mut self, outcome: Outcome) {
        let finish = ended(&self.task, outcome.clone());
        // If this future is dropped while it waits for the store, `drop` records the outcome.
        self.unrecorded = Some(outcome);
        record(&self.request.store, &self.task.tool, &finish, &CancellationToken::new()).await;
        self.unrecorded = None;
    }
}

impl Drop for ApprovedCall {
    fn drop(&mut self) {
        if let (Some(outcome), Ok(runtime)) = (self.unrecorded.take(), Handle::try_current()) {
            let (store, tool, finish) = (self.request.store.clone(), self.task.tool.clone(), ended(&self.task, outcome));
            runtime.spawn(async move { record(&store, &tool, &finish, &CancellationToken::new()).await });
        }
    }
}

fn cancelled(task: &Task) -> Outcome {
    Outcome::failed(task.id, task.tool.clone(), ToolError::cancelled())
}

fn ended(task: &Task, outcome: Outcome) -> Finish {
    Finish { task: task.id, epoch: task.epoch, end: TaskEnd::Over(Outcome { call_id: task.id, ..outcome }) }
}

fn storage(error: StoreError) -> ToolError {
    ToolError::new(ErrorKind::Storage, error.to_string()).caused_by(error)
}

/// Converts a request to its stored form. Fails if the tool no longer exists.
fn approval(toolkit: &Toolkit, request: ApprovalRequest) -> Result<Approval, ToolError> {
    let message = format!("the tool `{}` no longer exists", request.tool);
    toolkit.approval(request).ok_or_else(|| ToolError::new(ErrorKind::UnknownTool, message))
}

async fn add_approval(store: &StoreHandle, approval: &Approval) -> Result<(), ToolError> {
    store.add_approval(approval.clone()).await.map_err(storage)?;
    store.notify_request(approval);
    Ok(())
}

impl Executor {
    /// Stores an approval request. After a person has approved it, in any process, a worker runs the call.
    ///
    /// # Errors
    /// If the tool no longer exists, the request is for input, or the request cannot be stored.
    pub async fn ask_later(&self, toolkit: &Toolkit, request: ApprovalRequest) -> Result<Outcome, ToolError> {
        if request.input.is_some() {
            return Err(ToolError::failed(format!("the tool needs input now, so the request cannot be decided later: {}", request.reason)));
        }
        let store = self.store().ok_or_else(|| ToolError::new(ErrorKind::Storage, "no store is configured for the approval request"))?;
        let approval = approval(toolkit, request)?;
        add_approval(store, &approval).await?;
        Ok(CallState::Waiting(Box::new(approval.request)).into_outcome())
    }

    /// Stores an approval request and waits for the decision. Cancelling the context withdraws the request.
    ///
    /// # Errors
    /// Returns the outcome of the call if the call may not run.
    pub async fn request_approval(
        &self,
        toolkit: &Toolkit,
        request: ApprovalRequest,
        cx: &CallContext,
    ) -> Result<ApprovedCall, Box<Outcome>> {
        let (call, tool) = (request.call.id, request.tool.clone());
        self.wait_for_decision(toolkit, request, cx).await.map_err(|error| Box::new(Outcome::failed(call, tool, error)))
    }

    async fn wait_for_decision(&self, toolkit: &Toolkit, request: ApprovalRequest, cx: &CallContext) -> Result<ApprovedCall, ToolError> {
        let (call, id) = (request.call.id, request.id);
        let message = "a person must approve this call, but no store is configured for the approval request";
        let store = self.store().ok_or_else(|| ToolError::denied(Denial::Policy, message))?;
        // The decision takes effect only if a heartbeat shows that this process is alive.
        store.start_heartbeat().await.map_err(storage)?;
        let caller = request.caller.agent.clone().unwrap_or_else(|| "caller".into());
        let approval = approval(toolkit, request)?.asked_by(store.holder());
        // Created before the request is stored: if this future is dropped meanwhile, the store may still get the request.
        let mut open = OpenRequest { store: store.clone(), id, call, caller, open: true };
        add_approval(store, &approval).await?;
        let decided = tokio::select! {
            decided = store.decision(id) => decided.map_err(storage)?,
            () = cx.cancelled() => {
                open.withdraw().await;
                open.open = false;
                return Err(ToolError::cancelled());
            }
        };
        if let Some(error) = decided.refusal() {
            open.open = false;
            return Err(error);
        }
        let task = store.task(call).await.map_err(storage)?;
        let task = task.ok_or_else(|| storage(StoreError::NotFound(format!("task {call}"))))?;
        Ok(ApprovedCall::new(open, task, cx))
    }

    /// Runs a call that a person approved, for the first time or again. For a background call, waits for the worker. The call fails if the
    /// tool has changed or a rule now denies the call.
    ///
    /// The call stays open until [`ApprovedCall::end`], because its tool may request input, or its caller may run it again.
    pub async fn run_approved(&self, toolkit: &Toolkit, mut approved: ApprovedCall, cx: &CallContext) -> (CallState, Option<ApprovedCall>) {
        let (id, tool) = (approved.task.id, approved.task.tool.clone());
        if approved.lease.is_none() {
            approved.request.open = false;
            let accepted = Outcome { call_id: id, tool, status: Status::Accepted, duration: Duration::ZERO };
            return (CallState::Over(self.wait_for_worker(accepted, cx).await), None);
        }
        // Spawned, so that the call ends and is recorded even if this future is dropped.
        let cancel = approved.cancel.child_token();
        let dropped = cancel.clone().drop_guard();
        let caller = cx.cancellation().clone();
        let cx = cx.clone().with_cancel(cancel.clone());
        let (executor, toolkit) = (self.clone(), toolkit.clone());
        let mut run = tokio::spawn(async move {
            let state = match executor.prepare_approved(&toolkit, &approved.task, &cx) {
                Ok(prepared) => executor.attempt(prepared, &cx, !cx.is_silent()).await,
                Err(outcome) => CallState::Over(*outcome),
            };
            if let CallState::Over(outcome) = &state {
                approved.unrecorded = Some(outcome.clone());
            }
            (state, Some(approved))
        });
        let ran = tokio::select! {
            ran = &mut run => ran,
            () = caller.cancelled() => {
                cancel.cancel();
                run.await
            }
        };
        dropped.disarm();
        ran.unwrap_or_else(|error| {
            let interrupted = ToolError::new(ErrorKind::Interrupted, error.to_string());
            (CallState::Over(Outcome::failed(id, tool, interrupted)), None)
        })
    }

    fn prepare_approved(&self, toolkit: &Toolkit, task: &Task, cx: &CallContext) -> Result<Prepared, Box<Outcome>> {
        let refuse = |message| Err(Box::new(Outcome::failed(task.id, task.tool.clone(), ToolError::denied(Denial::Policy, message))));
        let Some(member) = toolkit.member(&task.tool).filter(|member| member.entry.digest() == task.definition) else {
            return refuse("the tool is gone or has changed since approval was requested");
        };
        if toolkit.restriction(&member.entry) == Permission::Deny {
            return refuse("the agent's own rules say `deny`");
        }
        self.prepare(member, toolkit.agent().or(cx.caller().agent.as_ref()), task)
    }

    /// Waits until a worker has run a call from the queue. Cancelling the context cancels the call.
    pub async fn wait_for_worker(&self, accepted: Outcome, cx: &CallContext) -> Outcome {
        let Some(store) = self.store() else { return accepted };
        let (call, tool) = (accepted.call_id, accepted.tool.clone());
        let failed = |error| Outcome::failed(call, tool.clone(), error);
        tokio::select! {
            ended = store.end_of(&accepted) => ended.unwrap_or_else(|error| failed(storage(error))),
            () = cx.cancelled() => {
                if let Err(error) = store.cancel_task(call).await {
                    tracing::warn!(%error, %call, "could not cancel an abandoned call in the queue");
                }
                failed(ToolError::cancelled())
            }
        }
    }
}
