//! An answer under way.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures_util::Stream;

use super::{Deltas, EndReason, ModelDelta, ModelError};

/// Where the pieces of an answer come from.
pub trait PollDeltas: Send {
    /// Adds what has come to `into`. `false` says that the answer is over and nothing was added.
    ///
    /// # Errors
    /// Why the answer breaks off. Nothing follows.
    fn poll_deltas(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>>;
}

/// An answer under way. Dropping it stops the model.
pub struct ModelStream(Box<dyn PollDeltas>);

impl fmt::Debug for ModelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelStream").finish_non_exhaustive()
    }
}

impl ModelStream {
    /// An answer that comes from there.
    pub fn new(source: impl PollDeltas + 'static) -> Self {
        Self(Box::new(source))
    }

    /// An answer that is all there.
    #[must_use]
    pub fn whole(deltas: Deltas) -> Self {
        Self::new(Whole(Some(deltas)))
    }

    /// An answer from a stream of groups of pieces.
    pub fn of(stream: impl Stream<Item = Result<Deltas, ModelError>> + Send + 'static) -> Self {
        Self::new(Streamed(Box::pin(stream)))
    }

    /// Adds what has come to `deltas`; for streams that stand around this one.
    ///
    /// # Errors
    /// Why the answer breaks off. Nothing follows.
    pub fn poll_deltas(&mut self, cx: &mut Context<'_>, deltas: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        self.0.poll_deltas(cx, deltas)
    }

    /// Waits for more and puts it in the place of what `deltas` holds. `false` says that the answer is over.
    ///
    /// # Errors
    /// Why the answer breaks off. Nothing follows.
    pub async fn read(&mut self, deltas: &mut Deltas) -> Result<bool, ModelError> {
        deltas.clear();
        poll_fn(|cx| self.0.poll_deltas(cx, deltas)).await
    }
}

/// Groups of pieces, each in a list of its own; [`ModelStream::read`] needs one list for all.
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

/// A whole answer in words.
impl From<&str> for ModelStream {
    fn from(text: &str) -> Self {
        [ModelDelta::Text(text), ModelDelta::End(EndReason::Stop)].into_iter().collect::<Deltas>().into()
    }
}

/// A whole answer in words.
impl From<String> for ModelStream {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

struct Whole(Option<Deltas>);

impl PollDeltas for Whole {
    fn poll_deltas(&mut self, _: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        let all = self.0.take();
        let more = all.is_some();
        if let Some(all) = all {
            *into = all;
        }
        Poll::Ready(Ok(more))
    }
}

struct Streamed<S>(S);

impl<S: Stream<Item = Result<Deltas, ModelError>> + Send + Unpin> PollDeltas for Streamed<S> {
    fn poll_deltas(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        pin!(&mut self.0).poll_next(cx).map(|next| match next {
            Some(Ok(deltas)) => {
                deltas.iter().for_each(|delta: ModelDelta<'_>| into.push(delta));
                Ok(true)
            }
            Some(Err(error)) => Err(error),
            None => Ok(false),
        })
    }
}
