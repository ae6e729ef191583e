//! Streamed responses of a language model.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures_util::Stream;

use super::{Deltas, EndReason, ModelDelta, ModelError};

/// A source of the deltas of one response.
pub trait PollDeltas: Send {
    /// Adds the deltas that have arrived to `into`. Returns false at the end of the response.
    ///
    /// # Errors
    /// If the response ends early. After an error there are no more deltas.
    fn poll_deltas(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>>;
}

/// A streamed response. Dropping it cancels the request.
pub struct ModelStream(Box<dyn PollDeltas>);

impl fmt::Debug for ModelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelStream").finish_non_exhaustive()
    }
}

impl ModelStream {
    /// Creates a response from a source of deltas.
    pub fn new(source: impl PollDeltas + 'static) -> Self {
        Self(Box::new(source))
    }

    /// Creates a response that is already complete.
    #[must_use]
    pub fn whole(deltas: Deltas) -> Self {
        Self::new(CompleteResponse(Some(deltas)))
    }

    /// Creates a response from a stream of buffers.
    pub fn of(stream: impl Stream<Item = Result<Deltas, ModelError>> + Send + 'static) -> Self {
        Self::new(StreamSource(Box::pin(stream)))
    }

    /// Adds the deltas that have arrived to `deltas`, for sources that wrap this stream. Returns false at the end of the response.
    ///
    /// # Errors
    /// If the response ends early. After an error there are no more deltas.
    pub fn poll_deltas(&mut self, cx: &mut Context<'_>, deltas: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        self.0.poll_deltas(cx, deltas)
    }

    /// Waits for more deltas and replaces the content of `deltas` with them. Returns false at the end of the response.
    ///
    /// # Errors
    /// If the response ends early. After an error there are no more deltas.
    pub async fn read(&mut self, deltas: &mut Deltas) -> Result<bool, ModelError> {
        deltas.clear();
        poll_fn(|cx| self.0.poll_deltas(cx, deltas)).await
    }
}

/// Yields a new buffer for each group of deltas. [`ModelStream::read`] reuses one buffer instead.
impl Stream for ModelStream {
    type Item = Result<Deltas, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut deltas = Deltas::default();
        self.0.poll_deltas(cx, &mut deltas).map(|polled| polled.map(|more| more.then_some(deltas)).transpose())
    }
}

impl From<Deltas> for ModelStream {
    fn from(deltas: Deltas) -> Self {
        Self::whole(deltas)
    }
}

/// Creates a complete response that consists of text.
impl From<&str> for ModelStream {
    fn from(text: &str) -> Self {
        [ModelDelta::Text(text), ModelDelta::End(EndReason::Stop)].into_iter().collect::<Deltas>().into()
    }
}

/// Creates a complete response that consists of text.
impl From<String> for ModelStream {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

struct CompleteResponse(Option<Deltas>);

impl PollDeltas for CompleteResponse {
    fn poll_deltas(&mut self, _: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        let all = self.0.take();
        Poll::Ready(Ok(all.map(|all| *into = all).is_some()))
    }
}

struct StreamSource<S>(S);

impl<S: Stream<Item = Result<Deltas, ModelError>> + Send + Unpin> PollDeltas for StreamSource<S> {
    fn poll_deltas(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        pin!(&mut self.0).poll_next(cx).map(|next| match next {
            Some(Ok(deltas)) => {
                into.extend(deltas.iter());
                Ok(true)
            }
            Some(Err(error)) => Err(error),
            None => Ok(false),
        })
    }
}
