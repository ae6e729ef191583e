//! The calls of a run that are under way, each in a task of its own.

use std::time::Duration;

use helve_core::{BoxFuture, CallContext, CallId, Decision, ErrorKind, Grant, Outcome, Question, Status, ToolCall, ToolError};
use helve_tools::{Admission, Attempted, Executor, Toolkit};
use serde_json::Value;
use tokio::task::{Id, JoinError, JoinSet};

use super::Driver;
use crate::run::Input;

/// What came of a call: its outcome, or a question to a person.
#[expect(clippy::large_enum_variant, reason = "almost every call is over")]
pub(super) enum Settled {
    Over(Outcome),
    Asks(Box<Question>),
}

/// The calls that are under way.
#[derive(Default)]
pub(super) struct Calls {
    tasks: JoinSet<Settled>,
    /// What each is, to be told of one that ends without a word.
    running: Vec<(Id, CallId, std::sync::Arc<str>)>,
}

/// What a call brings along when it starts.
pub(super) enum Ticket {
    /// Nothing.
    Plain,
    /// A person's answer.
    Granted(Grant),
    /// Arguments that a person wrote instead.
    Edited { arguments: Value, by: String },
}

/// Where calls run.
#[derive(Clone)]
pub(super) struct Around {
    pub(super) executor: Executor,
    pub(super) toolkit: Toolkit,
    pub(super) cx: CallContext,
}

impl Calls {
    /// Starts a call in a task of its own.
    pub(super) fn start(&mut self, around: &Around, call: ToolCall, ticket: Ticket) {
        let (id, tool, around) = (call.id, call.tool.clone(), around.clone());
        // Boxed, because a task is moved several times before it runs.
        let work: BoxFuture<'static, Settled> = match ticket {
            Ticket::Plain => Box::pin(async move { around.run(call, None).await }),
            Ticket::Granted(grant) => Box::pin(async move { around.run(call, Some(grant)).await }),
            Ticket::Edited { arguments, by } => Box::pin(async move { around.run_edited(call, arguments, by).await }),
        };
        let task = self.tasks.spawn(work);
        self.running.push((task.id(), id, tool));
    }

    /// The next call that ends or asks. Never ready while there is none.
    pub(super) async fn next(&mut self) -> Option<Settled> {
        let Some(ended) = self.tasks.join_next_with_id().await else { return std::future::pending().await };
        self.take(ended)
    }

    /// A call that ended or asks already.
    pub(super) fn try_next(&mut self) -> Option<Settled> {
        let ended = self.tasks.try_join_next_with_id()?;
        self.take(ended)
    }

    fn take(&mut self, ended: Result<(Id, Settled), JoinError>) -> Option<Settled> {
        let task = match &ended {
            Ok((task, _)) => *task,
            Err(error) => error.id(),
        };
        let place = self.running.iter().position(|(id, ..)| *id == task)?;
        let (_, call_id, tool) = self.running.swap_remove(place);
        let Ok((_, settled)) = ended else {
            // It panicked outside the tool, in a layer, and still owes an outcome.
            let lost = ToolError::new(ErrorKind::Failed, "the call ended without a result");
            return Some(Settled::Over(Outcome { call_id, tool, status: Status::Done(Err(lost)), duration: Duration::ZERO }));
        };
        Some(settled)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Lets calls that were told to stop tidy up on their own.
    pub(super) fn let_go(&mut self) {
        self.tasks.detach_all();
    }
}

impl Around {
    async fn run(&self, call: ToolCall, grant: Option<Grant>) -> Settled {
        match self.executor.admit(&self.toolkit, call, &self.cx, grant).await {
            Admission::Ready(prepared) => match self.executor.attempt_or_ask(prepared, &self.cx).await {
                Attempted::Over(outcome) => Settled::Over(outcome),
                Attempted::Asks(question) => Settled::Asks(Box::new(question)),
            },
            Admission::Answered(outcome) | Admission::Accepted(outcome) => Settled::Over(outcome),
            Admission::Waiting(question) => Settled::Asks(Box::new(question)),
        }
    }

    /// Runs a call with the arguments that a person wrote instead. They are checked like any others, and the person's
    /// answer is bound to them.
    async fn run_edited(&self, mut call: ToolCall, arguments: Value, by: String) -> Settled {
        let note = format!("[the user changed the arguments to {arguments}]");
        call.arguments = arguments;
        let mut settled = self.run(call, None).await;
        if let Settled::Asks(question) = settled {
            if question.input.is_some() {
                return Settled::Asks(question);
            }
            let grant = question.answer(Decision::Approve, by);
            settled = self.run(question.call, Some(grant)).await;
        }
        if let Settled::Over(Outcome { status: Status::Done(Ok(output)), .. }) = &mut settled {
            output.text = format!("{note}\n{}", output.text);
        }
        settled
    }
}

impl Driver<'_> {
    /// A call ended, or asks.
    pub(super) fn settled(&mut self, settled: Settled) {
        // What the tool said while it worked was said before it ended.
        while let Some(Ok(event)) = self.progress.as_mut().map(tokio::sync::mpsc::Receiver::try_recv) {
            self.emit(event);
        }
        match settled {
            Settled::Over(outcome) => {
                self.parts.contexts.on_tool_call(&outcome);
                self.handle(Input::CallFinished(outcome));
            }
            Settled::Asks(question) => self.handle(Input::CallWaits(question)),
        }
    }
}
