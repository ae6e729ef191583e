//! The running calls of a run, each in its own task.

use std::sync::Arc;

use helve_core::{BoxFuture, CallContext, CallId, Grant, Outcome, ToolCall, ToolError};
use helve_tools::{CallState, Executor, Toolkit};
use tokio::task::{Id, JoinError, JoinSet};

use super::Driver;
use crate::run::Input;

/// The running calls of a run.
#[derive(Default)]
pub(super) struct Calls {
    tasks: JoinSet<CallState>,
    /// The call id and the tool of each task, for tasks that end without an outcome.
    running: Vec<(Id, CallId, Arc<str>)>,
}

/// The executor, the tools and the call context that all calls of a run share.
#[derive(Clone)]
pub(super) struct CallEnvironment {
    pub(super) executor: Executor,
    pub(super) toolkit: Toolkit,
    pub(super) cx: CallContext,
}

impl Calls {
    /// Starts a call in its own task. With a grant, resumes a call after a decision.
    pub(super) fn start(&mut self, environment: &CallEnvironment, call: ToolCall, grant: Option<Grant>) {
        let (id, tool, to) = (call.id, call.tool.clone(), environment.clone());
        // Box the future, because a task is moved several times before it runs.
        let future: BoxFuture<'static, CallState> = match grant {
            None => Box::pin(async move { to.executor.call(&to.toolkit, call, &to.cx).await }),
            Some(grant) => Box::pin(async move { to.executor.resume(&to.toolkit, call, grant, &to.cx).await }),
        };
        let task = self.tasks.spawn(future);
        self.running.push((task.id(), id, tool));
    }

    /// Waits for the next call that ends or needs a decision; waits forever if no call is running.
    pub(super) async fn next(&mut self) -> Option<CallState> {
        let Some(ended) = self.tasks.join_next_with_id().await else { return std::future::pending().await };
        self.take(ended)
    }

    /// Returns a call that has ended or needs a decision, or `None` if all calls are still running.
    pub(super) fn try_next(&mut self) -> Option<CallState> {
        let ended = self.tasks.try_join_next_with_id()?;
        self.take(ended)
    }

    fn take(&mut self, ended: Result<(Id, CallState), JoinError>) -> Option<CallState> {
        let task = match &ended {
            Ok((task, _)) => *task,
            Err(error) => error.id(),
        };
        let index = self.running.iter().position(|(id, ..)| *id == task)?;
        let (_, call_id, tool) = self.running.swap_remove(index);
        // Every call needs an outcome, also if its task panicked outside the tool.
        let lost = |_| CallState::Over(Outcome::failed(call_id, tool, ToolError::failed("the call ended without a result")));
        Some(ended.map_or_else(lost, |(_, state)| state))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Lets cancelled calls clean up on their own.
    pub(super) fn detach(&mut self) {
        self.tasks.detach_all();
    }
}

impl Driver<'_> {
    /// Handles a call that ended or needs a decision.
    pub(super) fn call_changed(&mut self, state: CallState) {
        // Emit the events of the tool before the end of its call.
        while let Some(Ok(event)) = self.tool_events.as_mut().map(tokio::sync::mpsc::Receiver::try_recv) {
            self.emit(event);
        }
        match state {
            CallState::Over(outcome) => {
                self.agent.contexts.on_tool_call(&outcome);
                self.handle(Input::CallFinished(outcome));
            }
            CallState::Waiting(request) => self.handle(Input::ApprovalRequested(request)),
        }
    }
}
