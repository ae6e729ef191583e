//! How a reply travels: its status, its pace, and where its stream breaks.

use std::time::Duration;

use super::failure::Failure;
use super::reply::Reply;
use super::sse::Style;

/// How a reply travels.
#[derive(Debug, Clone, Default)]
pub(super) struct Delivery {
    pub status: Option<u16>,
    pub headers: Vec<(String, String)>,
    /// How long the client waits for the first byte.
    pub before: Duration,
    /// How long it waits between two pieces.
    pub between: Duration,
    /// How many bytes go out at once, wherever that cuts.
    pub bytes: Option<usize>,
    pub style: Style,
    /// What happens after how many events.
    pub trouble: Option<(usize, Trouble)>,
}

#[derive(Debug, Clone)]
pub(super) enum Trouble {
    /// The connection is closed in the middle of the next event.
    Cut,
    /// The stream ends as if it were complete.
    Stop,
    /// An error follows.
    Fail(Failure),
}

/// How it travels.
impl Reply {
    /// The same reply with this status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.delivery.status = Some(status);
        self
    }

    /// The same reply with one more header, such as `retry-after`.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.delivery.headers.push((name.into(), value.into()));
        self
    }

    /// Waits before the status and the headers are sent.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delivery.before = delay;
        self
    }

    /// Waits between two pieces.
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.delivery.between = pause;
        self
    }

    /// Sends the body in chunks of this many bytes, even where that cuts an event or a character. With a pause of a second and one
    /// byte, it is a byte a second.
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

    /// Leaves out the space after `data:` and `event:`, as some servers do.
    pub fn without_spaces(mut self) -> Self {
        self.delivery.style.tight = true;
        self
    }
}

/// Where it breaks. An event is what stands between two empty lines of a stream, whatever it says.
impl Reply {
    /// Closes the connection after so many events, in the middle of the next. A whole answer is cut in its middle.
    pub fn cut_after(self, events: usize) -> Self {
        self.trouble(events, Trouble::Cut)
    }

    /// Ends the stream after so many events, without those that say that it is over. A whole answer is not touched.
    pub fn stop_after(self, events: usize) -> Self {
        self.trouble(events, Trouble::Stop)
    }

    /// Sends an error after so many events, in a stream that began with 200. A whole answer is replaced by the error, still with 200.
    pub fn fail_after(self, events: usize, failure: Failure) -> Self {
        self.trouble(events, Trouble::Fail(failure))
    }

    fn trouble(mut self, events: usize, trouble: Trouble) -> Self {
        self.delivery.trouble = Some((events, trouble));
        self
    }
}
