//! How a reply is delivered: its status, its timing, and where its stream breaks.

use std::time::Duration;

use super::failure::Failure;
use super::reply::Reply;
use super::sse::Style;

/// How a reply is delivered.
#[derive(Debug, Clone, Default)]
pub(super) struct Delivery {
    pub status: Option<u16>,
    pub headers: Vec<(String, String)>,
    /// Delay before the first byte.
    pub before: Duration,
    /// Delay between two chunks.
    pub between: Duration,
    /// Size of the chunks in bytes, wherever that splits them.
    pub bytes: Option<usize>,
    pub style: Style,
    /// What goes wrong, and after how many events.
    pub interruption: Option<(usize, Interruption)>,
}

#[derive(Debug, Clone)]
pub(super) enum Interruption {
    /// The connection closes in the middle of the next event.
    Cut,
    /// The stream ends as if it were complete.
    Stop,
    /// An error follows.
    Fail(Failure),
}

/// Delivery.
impl Reply {
    /// Sets the status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.delivery.status = Some(status);
        self
    }

    /// Adds a header, such as `retry-after`.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.delivery.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the delay before the status and the headers.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delivery.before = delay;
        self
    }

    /// Sets the delay between two chunks.
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.delivery.between = pause;
        self
    }

    /// Sends the body in chunks of this many bytes, even if that splits an event or a character. With one byte and a pause of a second, it is
    /// a byte per second.
    pub fn in_chunks_of(mut self, bytes: usize) -> Self {
        self.delivery.bytes = Some(bytes.max(1));
        self
    }

    /// Ends the lines of a stream with CR LF.
    pub fn with_crlf(mut self) -> Self {
        self.delivery.style.crlf = true;
        self
    }

    /// Writes a comment before each event of a stream.
    pub fn with_comments(mut self) -> Self {
        self.delivery.style.comments = true;
        self
    }

    /// Omits the space after `data:` and `event:`, as some servers do.
    pub fn without_spaces(mut self) -> Self {
        self.delivery.style.tight = true;
        self
    }
}

/// Interruptions. An event is whatever comes between two empty lines of a stream.
impl Reply {
    /// Closes the connection in the middle of the event after the first `events`. A response without streaming is cut in half.
    pub fn cut_after(self, events: usize) -> Self {
        self.interruption(events, Interruption::Cut)
    }

    /// Ends the stream after this many events, without those that mark its end. A response without streaming is not changed.
    pub fn stop_after(self, events: usize) -> Self {
        self.interruption(events, Interruption::Stop)
    }

    /// Sends an error after this many events, in a stream that started with 200. A response without streaming becomes the error, with status 200.
    pub fn fail_after(self, events: usize, failure: Failure) -> Self {
        self.interruption(events, Interruption::Fail(failure))
    }

    fn interruption(mut self, events: usize, interruption: Interruption) -> Self {
        self.delivery.interruption = Some((events, interruption));
        self
    }
}
