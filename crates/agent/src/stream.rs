//! A run that is watched: everything that happens, as it happens.

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

/// What happens in a run, as it happens. The last item is the event that ends it, or the error.
///
/// The run goes on only while someone listens; dropping the stream stops it. A recorded run can then be resumed.
pub struct RunStream<'a, A = ()> {
    work: Option<BoxFuture<'a, (A, Result<Answer, AgentError>)>>,
    outbox: Outbox,
    cancel: CancellationToken,
    answer: Option<Answer>,
    /// Told after all that happened before.
    error: Option<AgentError>,
    /// Whose run it was, once it is over.
    agent: Option<A>,
}

/// A [`RunStream`] that owns its agent, so that it can be returned from a handler or moved into a task. The agent comes back at the
/// end, with [`into_agent`](RunStream::into_agent).
pub type OwnedRunStream = RunStream<'static, Agent>;

/// Events on their way from the run to its listener.
#[derive(Clone)]
pub(crate) struct Outbox {
    waiting: Arc<Mutex<VecDeque<Event>>>,
    pieces: Arc<Mutex<Pieces>>,
}

/// What a model says and thinks in pieces: a secret may begin in one and end in another.
struct Pieces {
    text: RedactedPieces,
    thoughts: RedactedPieces,
}

impl Outbox {
    /// Tells what happens without the secrets that a redactor knows.
    pub(crate) fn new(redactor: &Redactor) -> Self {
        let pieces = Pieces { text: redactor.pieces(), thoughts: redactor.pieces() };
        Self { waiting: Arc::default(), pieces: Arc::new(Mutex::new(pieces)) }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, VecDeque<Event>> {
        self.waiting.lock()
    }

    pub(crate) fn push(&self, mut event: Event) {
        let mut pieces = self.pieces.lock();
        match &mut event.data {
            EventData::TextDelta { text } => pieces.text.push_into(text),
            EventData::ReasoningDelta { text } => pieces.thoughts.push_into(text),
            EventData::ModelResponded { .. }
            | EventData::RunFinished { .. }
            | EventData::RunFailed { .. }
            | EventData::RunWaiting { .. } => {
                // The text is over: what was held back comes before what happens next.
                let thought = EventData::ReasoningDelta { text: pieces.thoughts.finish() };
                let text = EventData::TextDelta { text: pieces.text.finish() };
                for data in [thought, text] {
                    if !is_empty(&data) {
                        self.tell(Event { data, ..event.clone() });
                    }
                }
            }
            // What happens while a model speaks passes by: half a secret must not show because a tool ended in its middle.
            _ => {}
        }
        if !is_empty(&event.data) {
            self.tell(event);
        }
    }

    fn tell(&self, event: Event) {
        let mut waiting = self.lock();
        // Pieces of one call's arguments that nobody has seen yet are one piece.
        if let EventData::CallDelta { index, tool: None, arguments } = &event.data
            && let Some(Event { data: EventData::CallDelta { index: last, arguments: before, .. }, .. }) = waiting.back_mut()
            && last == index
        {
            before.push_str(arguments);
            return;
        }
        waiting.push_back(event);
    }

    /// Waits until the listener has taken everything.
    pub(crate) async fn taken(&self) {
        // The listener polls the run again after it took the last event, so no waker is needed.
        std::future::poll_fn(|_| if self.lock().is_empty() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

fn is_empty(data: &EventData) -> bool {
    matches!(data, EventData::TextDelta { text } | EventData::ReasoningDelta { text } if text.is_empty())
}

impl<A> std::fmt::Debug for RunStream<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunStream").field("is_over", &self.work.is_none()).finish_non_exhaustive()
    }
}

impl<'a> RunStream<'a> {
    pub(crate) fn borrowed(
        work: impl Future<Output = Result<Answer, AgentError>> + Send + 'a,
        outbox: Outbox,
        cancel: CancellationToken,
    ) -> Self {
        Self::new(Box::pin(async move { ((), work.await) }), outbox, cancel)
    }
}

impl OwnedRunStream {
    /// The agent, once the stream is over; `None` before. To stop early and keep the agent, cancel the run with
    /// [`canceller`](RunStream::canceller) and read to the end.
    #[must_use]
    pub fn into_agent(self) -> Option<Agent> {
        self.agent
    }
}

impl<'a, A> RunStream<'a, A> {
    pub(crate) fn new(work: BoxFuture<'a, (A, Result<Answer, AgentError>)>, outbox: Outbox, cancel: CancellationToken) -> Self {
        Self { work: Some(work), outbox, cancel, answer: None, error: None, agent: None }
    }

    /// Cancels the run when it is triggered, from anywhere. The run then ends in good order.
    #[must_use]
    pub fn canceller(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// The next piece of the answer's text. Everything else is left out.
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
    /// Why there is no answer.
    pub async fn finish(mut self) -> Result<Answer, AgentError>
    where
        A: Unpin,
    {
        while let Some(event) = self.next().await {
            event?;
        }
        self.answer.ok_or(AgentError::Over)
    }

    /// The answer, once the stream is over.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }
}

impl<A: Unpin> Stream for RunStream<'_, A> {
    type Item = Result<Event, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.outbox.lock().pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            let Some(work) = &mut self.work else { return Poll::Ready(self.error.take().map(Err)) };
            match work.as_mut().poll(cx) {
                Poll::Ready((agent, ended)) => {
                    (self.work, self.agent) = (None, Some(agent));
                    match ended {
                        Ok(answer) => self.answer = Some(answer),
                        Err(error) => self.error = Some(error),
                    }
                }
                Poll::Pending if self.outbox.lock().is_empty() => return Poll::Pending,
                Poll::Pending => {}
            }
        }
    }
}
