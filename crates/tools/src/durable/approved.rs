//! Calls that someone waits for in this process, while a person is asked about them or they are in the queue. When the person agrees,
//! this process makes the call, with all that its context has: the way back to whoever made it, for one.

use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{ApprovalState, DecisionRecord, DecisionResult, Finish, Task, TaskEnd};
use helve_core::{
    ApprovalId, ApprovalRequest, CallContext, CallId, Denial, ErrorKind, Outcome, Permission, Status, StoreError, ToolCall, ToolError,
    Verdict,
};

use tokio_util::sync::CancellationToken;

use crate::call::CallState;
use crate::durable::worker::keep;
use crate::durable::{Hold, StoreHandle};
use crate::executor::{Executor, Prepared};
use crate::toolkit::Toolkit;

/// How long is waited until it is tried again to take a request back. The store may be busy for a while.
const PAUSES: [Duration; 4] = [Duration::from_millis(200), Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30)];

/// A call that a person agreed to. Dropped, it is cancelled.
pub struct ApprovedCall {
    task: Box<Task>,
    waiting: Waiting,
}

impl ApprovedCall {
    /// The call, with the arguments that the person agreed to.
    #[must_use]
    pub fn call(&self) -> &ToolCall {
        &self.task.call
    }
}

/// A call that a person agreed to and that is not over in the store: its tool asked for something. Dropped, it is cancelled.
pub struct HeldTask {
    store: StoreHandle,
    task: Box<Task>,
    cancel: CancellationToken,
    over: bool,
    _hold: Hold,
}

impl HeldTask {
    /// The call, with the arguments that the person agreed to.
    #[must_use]
    pub fn call(&self) -> &ToolCall {
        &self.task.call
    }

    /// Records what came of the call in the end.
    pub async fn end(&mut self, outcome: Outcome) {
        self.over = true;
        // Without anyone who stops it: the process that ends breaks it off.
        keep(&self.store, &self.task.tool, &self.finish(outcome), &CancellationToken::new()).await;
    }

    /// Fires when someone cancels the task.
    #[must_use]
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    fn finish(&self, outcome: Outcome) -> Finish {
        let outcome = Outcome { call_id: self.task.id, ..outcome };
        Finish { task: self.task.id, epoch: self.task.epoch, end: TaskEnd::Over(outcome) }
    }
}

impl Drop for HeldTask {
    fn drop(&mut self) {
        if !self.over
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (store, tool) = (self.store.clone(), self.task.tool.clone());
            let end = self.finish(Outcome::failed(self.task.id, tool.clone(), ToolError::cancelled()));
            runtime.spawn(async move { keep(&store, &tool, &end, &CancellationToken::new()).await });
        }
    }
}

/// A call in the store that someone waits for. When they do not any more, it must not be made later.
struct Waiting {
    store: StoreHandle,
    request: ApprovalId,
    call: CallId,
    by: Arc<str>,
    over: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.over
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (store, request, call, by) = (self.store.clone(), self.request, self.call, self.by.clone());
            runtime.spawn(async move { withdraw(&store, request, call, by).await });
        }
    }
}

impl Executor {
    /// Stores the request whether a call may run. Once a person approves it, in any process, a worker makes the call.
    ///
    /// # Errors
    /// Where the tool is gone, or the request cannot be stored.
    pub async fn ask_later(&self, toolkit: &Toolkit, request: ApprovalRequest) -> Result<Outcome, ToolError> {
        if request.input.is_some() {
            return Err(ToolError::failed(format!("the tool waits for an answer now, and cannot be asked later: {}", request.reason)));
        }
        let gone = ToolError::new(ErrorKind::UnknownTool, format!("`{}` is gone", request.tool));
        let approval = toolkit.approval(request).ok_or(gone)?;
        let stored = |error: StoreError| ToolError::new(ErrorKind::Storage, error.to_string());
        let store = self.store().ok_or_else(|| ToolError::new(ErrorKind::Storage, "there is no store for the request"))?;
        store.add_approval(approval.clone()).await.map_err(stored)?;
        store.asked(&approval);
        Ok(CallState::Waiting(Box::new(approval.request)).into_outcome())
    }

    /// Asks a person about a call, and waits for their answer. Whoever cancels takes the request back.
    ///
    /// # Errors
    /// What became of the call where it may not be made.
    pub async fn approved(&self, toolkit: &Toolkit, request: ApprovalRequest, cx: &CallContext) -> Result<ApprovedCall, Box<Outcome>> {
        let (call, id, tool) = (request.call.id, request.id, request.tool.clone());
        let over = |error: ToolError| Box::new(Outcome::failed(call, tool.clone(), error));
        let stored = |error: StoreError| over(ToolError::new(ErrorKind::Storage, error.to_string()));
        let Some(store) = self.store() else {
            let message = "a person must approve this call, and there is no store in which they could be asked";
            return Err(over(ToolError::denied(Denial::Policy, message)));
        };
        // Whoever answers looks whether this process lives.
        store.begin().await.map_err(stored)?;
        let by = request.caller.agent.clone().unwrap_or_else(|| "caller".into());
        let Some(approval) = toolkit.approval(request).map(|approval| approval.asked_by(store.holder())) else {
            return Err(over(ToolError::new(ErrorKind::UnknownTool, format!("`{tool}` is gone"))));
        };
        // Also where nobody waits for that any more, the store may keep the request.
        let mut waiting = Waiting { store: store.clone(), request: id, call, by, over: false };
        store.add_approval(approval.clone()).await.map_err(stored)?;
        store.asked(&approval);
        let answered = tokio::select! {
            answered = store.answer_to(id) => answered.map_err(stored)?,
            () = cx.cancelled() => {
                withdraw(store, id, call, waiting.by.clone()).await;
                waiting.over = true;
                return Err(over(ToolError::cancelled()));
            }
        };
        if let Some(error) = answered.refusal() {
            waiting.over = true;
            return Err(over(error));
        }
        let gone = || StoreError::NotFound(format!("task {call}"));
        let task = store.task(call).await.and_then(|task| task.ok_or_else(gone)).map_err(stored)?;
        Ok(ApprovedCall { task: Box::new(task), waiting })
    }

    /// Makes a call that a person agreed to, and records what came of it; one in the background is waited for. The tool must still be as
    /// it was, and no rule may forbid the call. Where its tool asks, the call is not over for the store, nor is it after an outcome of
    /// which `goes_on` says so: then the task comes back, for [`Self::resume`] or [`Self::make_again`].
    pub async fn make(
        &self,
        toolkit: &Toolkit,
        approved: ApprovedCall,
        cx: &CallContext,
        goes_on: impl Fn(&Outcome) -> bool + Send + 'static,
    ) -> (CallState, Option<HeldTask>) {
        let ApprovedCall { task, mut waiting } = approved;
        waiting.over = true;
        let store = waiting.store.clone();
        if task.holder != Some(store.holder()) {
            let queued = Outcome { call_id: task.id, tool: task.tool, status: Status::Accepted, duration: Duration::ZERO };
            return (CallState::Over(self.queued(queued, cx).await), None);
        }
        let cancel = cx.cancellation().child_token();
        let hold = store.hold_task(task.id, cancel.clone());
        self.make_again(toolkit, HeldTask { store, task, cancel, over: false, _hold: hold }, cx, goes_on).await
    }

    /// Makes a call once more that a person agreed to: its caller brings what it asked for. That it may run was decided, and is checked
    /// like that of every call in the queue.
    pub async fn make_again(
        &self,
        toolkit: &Toolkit,
        mut held: HeldTask,
        cx: &CallContext,
        goes_on: impl Fn(&Outcome) -> bool + Send + 'static,
    ) -> (CallState, Option<HeldTask>) {
        // It is brought to its end also where nobody waits for that.
        let cancel = held.cancel.child_token();
        let gone = cancel.clone().drop_guard();
        let caller = cx.cancellation().clone();
        let cx = cx.clone().with_cancel(cancel.clone());
        let (executor, toolkit) = (self.clone(), toolkit.clone());
        let (id, tool) = (held.task.id, held.task.tool.clone());
        let work = async move {
            let state = match executor.prepare_approved(&toolkit, &held.task, &cx) {
                Ok(prepared) => executor.attempt(prepared, &cx, !cx.is_silent()).await,
                Err(outcome) => CallState::Over(*outcome),
            };
            match &state {
                CallState::Over(outcome) if !goes_on(outcome) => {
                    held.end(outcome.clone()).await;
                    (state, None)
                }
                _ => (state, Some(held)),
            }
        };
        let mut work = tokio::spawn(work);
        let made = tokio::select! {
            made = &mut work => made,
            () = caller.cancelled() => {
                cancel.cancel();
                work.await
            }
        };
        gone.disarm();
        made.unwrap_or_else(|error| {
            let broken = ToolError::new(ErrorKind::Interrupted, format!("{error}"));
            (CallState::Over(Outcome::failed(id, tool, broken)), None)
        })
    }

    fn prepare_approved(&self, toolkit: &Toolkit, task: &Task, cx: &CallContext) -> Result<Prepared, Box<Outcome>> {
        let refuse = |message| Err(Box::new(Outcome::failed(task.id, task.tool.clone(), ToolError::denied(Denial::Policy, message))));
        let Some(member) = toolkit.member(&task.tool).filter(|member| member.entry.digest() == task.definition) else {
            return refuse("the tool is gone or has changed since the request was asked");
        };
        if toolkit.restriction(&member.entry) == Permission::Deny {
            return refuse("the agent's own rules say `deny`");
        }
        self.prepare(member, toolkit.agent().or(cx.caller().agent.as_ref()), task)
    }

    /// Waits for the end of a call that was accepted into the queue. Whoever cancels cancels it there.
    pub async fn queued(&self, accepted: Outcome, cx: &CallContext) -> Outcome {
        let Some(store) = self.store() else { return accepted };
        let (call, tool) = (accepted.call_id, accepted.tool.clone());
        let failed = |error| Outcome::failed(call, tool.clone(), error);
        tokio::select! {
            ended = store.end_of(&accepted) => ended.unwrap_or_else(|error| failed(ToolError::new(ErrorKind::Storage, error.to_string()))),
            () = cx.cancelled() => {
                if let Err(error) = store.cancel_task(call).await {
                    tracing::warn!(%error, %call, "a call that nobody waits for any more could not be cancelled");
                }
                failed(ToolError::cancelled())
            }
        }
    }
}

/// Nobody waits for the answer any more: what would come of it must not come later, as far as that can be helped.
async fn withdraw(store: &StoreHandle, request: ApprovalId, call: CallId, by: Arc<str>) {
    let reason = Some("whoever made the call gave it up".to_owned());
    let reply = DecisionRecord { verdict: Verdict::Deny, by, reason, always: false, arguments: None };
    for pause in PAUSES {
        match store.decide(request, reply.clone()).await {
            Ok(DecisionResult::TooLate(approval)) if approval.state == ApprovalState::Approved => match forget(store, call).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, %call, "a call that nobody waits for any more is not withdrawn yet"),
            },
            // The request may still be on its way to the store.
            Ok(DecisionResult::Unknown) => {}
            Ok(_) => return,
            Err(error) => tracing::warn!(%error, %call, "a call that nobody waits for any more is not withdrawn yet"),
        }
        tokio::time::sleep(pause).await;
    }
}

/// Ends a call that was approved and not made.
async fn forget(store: &StoreHandle, call: CallId) -> Result<(), StoreError> {
    if let Some(task) = store.task(call).await? {
        if task.holder != Some(store.holder()) {
            return store.cancel_task(call).await.map(drop);
        }
        let end = TaskEnd::Over(Outcome::failed(call, task.tool.clone(), ToolError::cancelled()));
        store.finish(vec![Finish { task: call, epoch: task.epoch, end }]).await?;
    }
    Ok(())
}
