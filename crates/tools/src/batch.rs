//! The calls of one turn: parallel, exclusive tools alone, results in the order of the calls.

use std::time::Duration;

use helve_core::{CallContext, ErrorKind, Outcome, Question, Status, ToolCall, ToolError};
use tokio::task::JoinSet;

use crate::executor::{Admission, Executor};
use crate::toolkit::{Member, Toolkit};

/// What came of one call: its outcome so far, and the question where a person must be asked.
#[derive(Debug)]
pub struct Settled {
    /// The outcome; `waiting` where there is a question.
    pub outcome: Outcome,
    /// What a person must answer before the call can run.
    pub question: Option<Question>,
}

impl From<Outcome> for Settled {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, question: None }
    }
}

impl Executor {
    /// Admits and attempts one call, and keeps the question if it has to wait.
    pub async fn settle(&self, toolkit: &Toolkit, call: ToolCall, cx: &CallContext) -> Settled {
        match self.admit(toolkit, call, cx, None).await {
            Admission::Ready(prepared) => self.attempt(prepared, cx).await.into(),
            Admission::Answered(outcome) | Admission::Accepted(outcome) => outcome.into(),
            Admission::Waiting(question) => {
                let (call_id, tool, status) = (question.call.id, question.tool.clone(), Status::Waiting(question.id));
                Settled { outcome: Outcome { call_id, tool, status, duration: Duration::ZERO }, question: Some(question) }
            }
        }
    }

    /// Settles the calls of one turn. Every call gets its outcome, in the order of the calls; one failure disturbs
    /// no other call. Dropping the future drops the work.
    pub async fn batch(&self, toolkit: &Toolkit, calls: Vec<ToolCall>, cx: &CallContext) -> Vec<Settled> {
        let mut settled: Vec<Option<Settled>> = Vec::new();
        settled.resize_with(calls.len(), || None);
        let mut running = Running { executor: self, toolkit, cx, tasks: JoinSet::new(), announced: Vec::new() };
        for (place, call) in calls.into_iter().enumerate() {
            let exclusive = toolkit.member(&call.tool).is_some_and(Member::is_exclusive);
            if exclusive {
                running.join(&mut settled).await;
            }
            running.start(place, call);
            if exclusive {
                running.join(&mut settled).await;
            }
        }
        running.join(&mut settled).await;
        settled.into_iter().flatten().collect()
    }
}

struct Running<'a> {
    executor: &'a Executor,
    toolkit: &'a Toolkit,
    cx: &'a CallContext,
    tasks: JoinSet<(usize, Settled)>,
    /// Calls that have no outcome yet, to be told apart if a task itself should fail.
    announced: Vec<(usize, Outcome)>,
}

impl Running<'_> {
    fn start(&mut self, place: usize, call: ToolCall) {
        let lost = ToolError::new(ErrorKind::Failed, "the call ended without a result");
        let fallback = Outcome { call_id: call.id, tool: call.tool.clone(), status: Status::Done(Err(lost)), duration: Duration::ZERO };
        self.announced.push((place, fallback));
        let (executor, toolkit, cx) = (self.executor.clone(), self.toolkit.clone(), self.cx.clone());
        self.tasks.spawn(async move { (place, executor.settle(&toolkit, call, &cx).await) });
    }

    async fn join(&mut self, settled: &mut [Option<Settled>]) {
        while let Some(ended) = self.tasks.join_next().await {
            if let Ok((place, result)) = ended {
                settled[place] = Some(result);
            }
        }
        // A task that panicked outside the tool, in a layer, still owes an outcome.
        for (place, fallback) in self.announced.drain(..) {
            settled[place].get_or_insert(fallback.into());
        }
    }
}
