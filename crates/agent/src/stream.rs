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

/// The events of a run. The last item is the event that ends it, or the error.
///
/// The run makes progress only while the stream is polled, and stops if it is dropped. A stored run can then be resumed.
pub struct RunStream<'a, A = ()> {
    run: Option<BoxFuture<'a, (A, Result<Answer, AgentError>)>>,
    outbox: Outbox,
    cancel: CancellationToken,
    answer: Option<Answer>,
    /// The last item, after all events.
    error: Option<AgentError>,
    /// The agent, once the run is over.
    agent: Option<A>,
}

/// A [`RunStream`] that owns its agent, so that it can be returned from a handler or moved into a task. The agent comes back at the
/// end, with [`into_agent`](RunStream::into_agent).
pub type OwnedRunStream = RunStream<'static, Agent>;

/// Events on their way from the run to its listener.
#[derive(Clone)]
pub(crate) struct Outbox(Arc<Mutex<Queue>>);

struct Queue {
    events: VecDeque<Event>,
    /// Text and reasoning come in pieces: a secret may start in one piece and end in the next.
    text: RedactedPieces,
    reasoning: RedactedPieces,
}

impl Outbox {
    /// Creates an outbox that removes the secrets of a redactor.
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

    /// Waits until the listener has read everything.
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
                // The text is complete: what was held back comes before this event.
                let reasoning = EventData::ReasoningDelta { text: self.reasoning.finish() };
                let text = EventData::TextDelta { text: self.text.finish() };
                for data in [reasoning, text] {
                    self.add(Event { data, ..event.clone() });
                }
            }
            // Other events do not end the text: half a secret must not show because a tool ended in its middle.
            _ => {}
        }
        self.add(event);
    }

    fn add(&mut self, event: Event) {
        if is_empty(&event.data) {
            return;
        }
        // Unread pieces of one call's arguments are joined.
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
    /// The agent; `None` if the stream is not over. To stop early and keep the agent, cancel the run with
    /// [`canceller`](RunStream::canceller) and read to the end.
    #[must_use]
    pub fn into_agent(self) -> Option<Agent> {
        self.agent
    }
}

impl<'a, A> RunStream<'a, A> {
    pub(crate) fn new(run: BoxFuture<'a, (A, Result<Answer, AgentError>)>, outbox: Outbox, cancel: CancellationToken) -> Self {
        Self { run: Some(run), outbox, cancel, answer: None, error: None, agent: None }
    }

    /// A token that cancels the run. The stream then ends in good order.
    #[must_use]
    pub fn canceller(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// The next piece of the answer's text. Other events are skipped.
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

    /// Runs to the end.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn finish(mut self) -> Result<Answer, AgentError>
    where
        A: Unpin,
    {
        while let Some(event) = self.next().await {
            event?;
        }
        self.answer.ok_or(AgentError::Over)
    }

    /// The answer; `None` if the stream is not over or there is none.
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
