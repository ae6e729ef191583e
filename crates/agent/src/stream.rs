//! A run as a stream of events.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt};
use helve_core::{BoxFuture, Event, EventData, RedactedPieces, Redactor};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::error::AgentError;
use crate::run::Answer;

/// A stream of the events of a run. The last item is the event that ends the run, or the error.
///
/// The run makes progress only while the stream is polled. Dropping the stream stops the run; a stored run can be resumed later.
pub struct RunStream<'a, A = ()> {
    run: Option<BoxFuture<'a, (A, Result<Answer, AgentError>)>>,
    outbox: Outbox,
    cancel: CancellationToken,
    answer: Option<Answer>,
    /// The error of the run, which is the last item after all events.
    error: Option<AgentError>,
    /// The agent, after the run has ended.
    agent: Option<A>,
}

/// A [`RunStream`] that owns its agent, so that a handler can return the stream and a task can own it. At the end,
/// [`into_agent`](RunStream::into_agent) returns the agent.
pub type OwnedRunStream = RunStream<'static, Agent>;

/// The queue of events between a run and its listener.
#[derive(Clone)]
pub(crate) struct Outbox(Arc<Mutex<Queue>>);

struct Queue {
    events: VecDeque<Event>,
    /// The redactor for pieces of text: a secret may start in one piece and end in the next.
    text: RedactedPieces,
    /// The redactor for pieces of reasoning.
    reasoning: RedactedPieces,
}

impl Outbox {
    /// Creates an outbox that redacts secrets in text and reasoning.
    pub(crate) fn new(redactor: &Redactor) -> Self {
        Self(Arc::new(Mutex::new(Queue { events: VecDeque::new(), text: redactor.pieces(), reasoning: redactor.pieces() })))
    }

    pub(crate) fn push(&self, event: Event) {
        self.0.lock().push(event);
    }

    fn pop(&self) -> Option<Event> {
        self.0.lock().events.pop_front()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().events.is_empty()
    }

    /// Waits until the listener has read all events.
    pub(crate) async fn flushed(&self) {
        // The listener polls the run again after it took the last event, so no waker is needed.
        std::future::poll_fn(|_| if self.is_empty() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

impl Queue {
    fn push(&mut self, mut event: Event) {
        match &mut event.data {
            EventData::TextDelta { text } => self.text.push_into(text),
            EventData::ReasoningDelta { text } => self.reasoning.push_into(text),
            EventData::ModelResponded { .. }
            | EventData::RunFinished { .. }
            | EventData::RunFailed { .. }
            | EventData::RunWaiting { .. } => {
                // The text is complete: emit the text that the redactor has held back before this event.
                let reasoning = EventData::ReasoningDelta { text: self.reasoning.finish() };
                let text = EventData::TextDelta { text: self.text.finish() };
                for data in [reasoning, text] {
                    self.add(Event { data, ..event.clone() });
                }
            }
            // Other events do not end the text: a tool that ends in the middle of a secret must not reveal its first half.
            _ => {}
        }
        self.add(event);
    }

    fn add(&mut self, event: Event) {
        if is_empty(&event.data) {
            return;
        }
        // Join unread pieces of the arguments of one call.
        if let EventData::CallDelta { index, tool: None, arguments } = &event.data
            && let Some(Event { data: EventData::CallDelta { index: last, arguments: before, .. }, .. }) = self.events.back_mut()
            && last == index
        {
            before.push_str(arguments);
            return;
        }
        self.events.push_back(event);
    }
}

fn is_empty(data: &EventData) -> bool {
    matches!(data, EventData::TextDelta { text } | EventData::ReasoningDelta { text } if text.is_empty())
}

impl<A> std::fmt::Debug for RunStream<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunStream").field("is_over", &self.run.is_none()).finish_non_exhaustive()
    }
}

impl OwnedRunStream {
    /// Returns the agent, or `None` if the stream has not ended. To stop early and keep the agent, cancel the run with
    /// [`canceller`](RunStream::canceller) and read the stream to its end.
    #[must_use]
    pub fn into_agent(self) -> Option<Agent> {
        self.agent
    }
}

impl<'a, A> RunStream<'a, A> {
    pub(crate) fn new(run: BoxFuture<'a, (A, Result<Answer, AgentError>)>, outbox: Outbox, cancel: CancellationToken) -> Self {
        Self { run: Some(run), outbox, cancel, answer: None, error: None, agent: None }
    }

    /// Returns a token that cancels the run. After cancellation the stream still emits the last events of the run.
    #[must_use]
    pub fn canceller(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Returns the next piece of the model's text, and skips other events. Returns `None` at the end of the stream.
    pub async fn next_text(&mut self) -> Option<Result<String, AgentError>>
    where
        A: Unpin,
    {
        loop {
            match self.next().await? {
                Ok(Event { data: EventData::TextDelta { text }, .. }) => return Some(Ok(text)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Drives the run to its end, and returns the answer.
    ///
    /// # Errors
    /// Returns an error if there is no answer.
    pub async fn finish(mut self) -> Result<Answer, AgentError>
    where
        A: Unpin,
    {
        while let Some(event) = self.next().await {
            event?;
        }
        self.answer.ok_or(AgentError::Over)
    }

    /// Returns the answer, or `None` if the stream has not ended or there is no answer.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }
}

impl<A: Unpin> Stream for RunStream<'_, A> {
    type Item = Result<Event, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.outbox.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            let Some(run) = &mut self.run else { return Poll::Ready(self.error.take().map(Err)) };
            match run.as_mut().poll(cx) {
                Poll::Ready((agent, ended)) => {
                    (self.run, self.agent) = (None, Some(agent));
                    match ended {
                        Ok(answer) => self.answer = Some(answer),
                        Err(error) => self.error = Some(error),
                    }
                }
                Poll::Pending if self.outbox.is_empty() => return Poll::Pending,
                Poll::Pending => {}
            }
        }
    }
}
