//! Reads HTTP responses: whole bodies, and streams of messages as server-sent events.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use helve_fetch::{EventError, Events, StreamLimits, StreamingResponse};
use helve_mcp_wire::Message;
use tokio::time::timeout;

use crate::client::error::RequestError;
use crate::client::limits::{HANDSHAKE_TIMEOUT, MAX_MESSAGE};
use crate::client::peer::{Outbox, Peer, PendingRequest};

/// Maximum number of bytes to read of an error response.
pub(super) const MAX_ERROR: u64 = 64 << 10;
/// Timeout of requests without a timeout, and of streams on which the server may stay silent.
const LONGEST: Duration = Duration::from_hours(24);
/// Timeout for reading the rest of a response that is no longer needed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A stream of messages, which may span several HTTP responses.
#[derive(Default)]
pub(super) struct MessageStream {
    pub(super) events: Events,
}

impl MessageStream {
    /// Reads messages until the stream ends, or until the pending request has its response. Returns the number of messages.
    pub(super) async fn read(
        &mut self,
        mut response: StreamingResponse,
        peer: &Arc<Peer>,
        mut pending: Option<&mut PendingRequest<'_>>,
        outbox: &Arc<dyn Outbox>,
    ) -> Result<usize, RequestError> {
        let via = pending.as_ref().map(|pending| pending.id);
        self.events.restart();
        let mut count = 0;
        let mut sink = |_: &str, data: &[u8]| {
            // Servers send events without data to give the stream an id.
            if !data.trim_ascii().is_empty() {
                for message in read_messages(data)? {
                    count += 1;
                    peer.deliver(message, via, outbox);
                }
            }
            Ok(())
        };
        while let Some(chunk) = response.chunk().await? {
            self.events.feed(&chunk, &mut sink).map_err(event_error)?;
            if pending.as_mut().is_some_and(|pending| !pending.is_open()) {
                drain(response);
                break;
            }
        }
        Ok(count)
    }
}

pub(super) fn event_error(error: EventError<RequestError>) -> RequestError {
    match error {
        EventError::TooLarge => RequestError::TooLarge(MAX_MESSAGE),
        EventError::Sink(error) => error,
    }
}

pub(super) fn read_messages(text: &[u8]) -> Result<Vec<Message>, RequestError> {
    Message::read_several(text).map_err(|error| RequestError::Protocol(error.to_string()))
}

pub(super) fn is_stream(response: &StreamingResponse) -> bool {
    response.header("content-type").is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

pub(super) async fn read_all(mut response: StreamingResponse, limit: u64) -> Result<Vec<u8>, RequestError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() as u64 > limit {
            return Err(RequestError::TooLarge(usize::try_from(limit).unwrap_or(usize::MAX)));
        }
    }
    Ok(body)
}

/// Discards a response. Reads its end if that arrives soon, so that the connection can be reused.
pub(super) fn drain(mut response: StreamingResponse) {
    if matches!(response.chunk().now_or_never(), Some(Ok(None) | Err(_))) {
        return;
    }
    tokio::spawn(timeout(DRAIN_TIMEOUT, read_all(response, MAX_ERROR)));
}

/// Returns the limits of a request with this timeout; without one, the timeout is one day.
pub(super) fn patience(time: Option<Duration>) -> StreamLimits {
    let time = time.unwrap_or(LONGEST);
    // A stream may carry any amount of progress before its response; each message is bounded.
    StreamLimits { first_byte: time, idle: time, total: time, bytes: u64::MAX }
}

/// Returns the limits of a stream on which the server sends messages that answer no request.
pub(super) fn stream_patience() -> StreamLimits {
    StreamLimits { first_byte: HANDSHAKE_TIMEOUT, ..patience(None) }
}
