//! The calls of a run that are under way, each in a task of its own.

use std::time::Duration;

use helve_core::{BoxFuture, CallContext, CallId, ErrorKind, Grant, Outcome, Status, ToolCall, ToolError};
use helve_tools::{CallState, Executor, Toolkit};
use tokio::task::{Id, JoinError, JoinSet};

use super::Driver;
use crate::run::Input;

/// The calls that are under way.
#[derive(Default)]
pub(super) struct Calls {
    tasks: JoinSet<CallState>,
    /// What each is, to be told of one that ends without a word.
    running: Vec<(Id, CallId, std::sync::Arc<str>)>,
}

/// Where calls run.
#[derive(Clone)]
pub(super) struct Around {
    pub(super) executor: Executor,
    pub(super) toolkit: Toolkit,
    pub(super) cx: CallContext,
}

impl Calls {
    /// Starts a call in a task of its own, or goes on with one that a person has answered.
    pub(super) fn start(&mut self, around: &Around, call: ToolCall, grant: Option<Grant>) {
        let (id, tool, around) = (call.id, call.tool.clone(), around.clone());
        // Boxed, because a task is moved several times before it runs.
        let work: BoxFuture<'static, CallState> = match grant {
            None => Box::pin(async move { around.executor.call(&around.toolkit, call, &around.cx).await }),
            Some(grant) => Box::pin(async move { around.executor.resume(&around.toolkit, call, grant, &around.cx).await }),
        };
        let task = self.tasks.spawn(work);
        self.running.push((task.id(), id, tool));
    }

    /// The next call that ends or asks. Never ready while there is none.
    pub(super) async fn next(&mut self) -> Option<CallState> {
        let Some(ended) = self.tasks.join_next_with_id().await else { return std::future::pending().await };
        self.take(ended)
    }

    /// A call that ended or asks already.
    pub(super) fn try_next(&mut self) -> Option<CallState> {
        let ended = self.tasks.try_join_next_with_id()?;
        self.take(ended)
    }

    fn take(&mut self, ended: Result<(Id, CallState), JoinError>) -> Option<CallState> {
        let task = match &ended {
            Ok((task, _)) => *task,
            Err(error) => error.id(),
        };
        let place = self.running.iter().position(|(id, ..)| *id == task)?;
        let (_, call_id, tool) = self.running.swap_remove(place);
        let Ok((_, state)) = ended else {
            // It panicked outside the tool, in a layer, and still owes an outcome.
            let lost = ToolError::new(ErrorKind::Failed, "the call ended without a result");
            return Some(CallState::Over(Outcome { call_id, tool, status: Status::Done(Err(lost)), duration: Duration::ZERO }));
        };
        Some(state)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Lets calls that were told to stop tidy up on their own.
    pub(super) fn let_go(&mut self) {
        self.tasks.detach_all();
    }
}

impl Driver<'_> {
    /// A call ended, or asks.
    pub(super) fn settled(&mut self, state: CallState) {
        // What the tool said while it worked was said before it ended.
        while let Some(Ok(event)) = self.progress.as_mut().map(tokio::sync::mpsc::Receiver::try_recv) {
            self.emit(event);
        }
        match state {
            CallState::Over(outcome) => {
                self.parts.contexts.on_tool_call(&outcome);
                self.handle(Input::CallFinished(outcome));
            }
            CallState::Waiting(request) => self.handle(Input::CallWaits(request)),
        }
    }
}
