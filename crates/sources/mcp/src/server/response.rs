//! HTTP responses: JSON if the first message is the response, otherwise a stream of events that ends with the response.
//!
//! The head of the HTTP response is delayed until the first message, because the status depends on this message. The delay is limited,
//! because proxies close the connection to a silent server.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use helve_mcp_wire::{Message, RequestId, RpcError};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{self, Interval, MissedTickBehavior};
use tokio_util::sync::DropGuard;

/// A message to a client.
#[derive(Debug)]
pub(super) enum OutgoingMessage {
    /// A notification or a request. On a stream that can be resumed, the message has a number.
    Notification { text: String, number: Option<u64> },
    /// The response to the client's request, and its error code if it is an error.
    Response { text: String, code: Option<i64> },
    /// The end of the messages, without a response.
    Closed,
}

impl OutgoingMessage {
    pub fn notification(method: &str, params: serde_json::Value) -> Self {
        let message = Message::Notification { method: method.to_owned(), params: Some(params) };
        Self::Notification { text: message.write(), number: None }
    }

    pub fn response(id: RequestId, result: Result<serde_json::Value, RpcError>) -> Self {
        let code = result.as_ref().err().map(|error| error.code);
        Self::Response { text: Message::Response { id: Some(id), result }.write(), code }
    }
}

/// The body of an HTTP response: a JSON message, or a stream of events.
pub struct ResponseBody(BodyKind);

enum BodyKind {
    Whole(Full<Bytes>),
    Events(Box<Events>),
}

/// A stream of messages as server-sent events, with keep-alive comments in between.
struct Events {
    first: Option<OutgoingMessage>,
    rest: mpsc::Receiver<OutgoingMessage>,
    beat: Interval,
    over: bool,
    /// Cancels the request when the client disconnects.
    _guard: Option<DropGuard>,
}

/// The content types that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accept {
    pub json: bool,
    pub events: bool,
}

impl Accept {
    /// Parses the header `Accept`. Without the header, the client accepts everything.
    pub fn read(headers: &HeaderMap) -> Self {
        let mut given = headers.get_all(header::ACCEPT).iter().peekable();
        if given.peek().is_none() {
            return Self { json: true, events: true };
        }
        let kinds: Vec<String> =
            given.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).filter_map(kind).collect();
        let accepts = |whole: &str, group: &str| kinds.iter().any(|kind| kind == whole || kind == group || kind == "*/*");
        Self { json: accepts("application/json", "application/*"), events: accepts("text/event-stream", "text/*") }
    }
}

/// Returns the content type in a part of the header, or `None` if it has the weight 0.
fn kind(part: &str) -> Option<String> {
    let mut pieces = part.split(';').map(|piece| piece.trim().to_ascii_lowercase());
    let kind = pieces.next()?;
    let refused = pieces.any(|piece| piece.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0)));
    (!refused).then_some(kind)
}

/// Creates a response without a body.
pub(super) fn empty(status: StatusCode) -> Response<ResponseBody> {
    response(status, None, BodyKind::Whole(Full::default()))
}

/// Creates a response with one JSON message.
pub(super) fn json(status: StatusCode, text: String) -> Response<ResponseBody> {
    response(status, Some("application/json"), BodyKind::Whole(Full::new(text.into())))
}

/// Creates a response with a JSON-RPC error.
pub(super) fn refuse(status: StatusCode, id: Option<RequestId>, error: RpcError) -> Response<ResponseBody> {
    json(status, Message::Response { id, result: Err(error) }.write())
}

/// Creates a response with a stream of events, with keep-alive comments at the interval `beat`.
pub(super) fn events(
    first: Option<OutgoingMessage>,
    rest: mpsc::Receiver<OutgoingMessage>,
    beat: Duration,
    guard: Option<DropGuard>,
) -> Response<ResponseBody> {
    let mut beat = time::interval_at(time::Instant::now() + beat, beat);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let events = Events { first, rest, beat, over: false, _guard: guard };
    let mut response = response(StatusCode::OK, Some("text/event-stream"), BodyKind::Events(Box::new(events)));
    // Prevents proxies from buffering events.
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Waits for the first message, and creates the response for it. A client that does not accept events gets only the response message.
/// Dropping the future or the response drops `guard`.
pub(super) async fn respond(
    mut out: mpsc::Receiver<OutgoingMessage>,
    accept: Accept,
    beat: Duration,
    status: impl FnOnce(i64) -> StatusCode,
    guard: Option<DropGuard>,
) -> Response<ResponseBody> {
    let patience = if accept.events { beat } else { Duration::MAX };
    match time::timeout(patience, out.recv()).await {
        Ok(Some(OutgoingMessage::Response { text, code })) if accept.json => json(code.map_or(StatusCode::OK, status), text),
        Ok(Some(OutgoingMessage::Closed) | None) if !accept.events => empty(StatusCode::ACCEPTED),
        Ok(first) => events(Some(first.unwrap_or(OutgoingMessage::Closed)), out, beat, guard),
        Err(_) => events(None, out, beat, guard),
    }
}

fn response(status: StatusCode, kind: Option<&'static str>, body: BodyKind) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody(body));
    *response.status_mut() = status;
    if let Some(kind) = kind {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

impl Events {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        if self.over {
            return Poll::Ready(None);
        }
        let next = match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => self.rest.poll_recv(cx),
        };
        match next {
            Poll::Ready(Some(OutgoingMessage::Notification { text, number })) => {
                let number = number.map(|number| format!("id: {number}\n")).unwrap_or_default();
                Poll::Ready(Some(format!("{number}event: message\ndata: {text}\n\n")))
            }
            Poll::Ready(Some(OutgoingMessage::Response { text, .. })) => {
                self.over = true;
                Poll::Ready(Some(format!("event: message\ndata: {text}\n\n")))
            }
            Poll::Ready(Some(OutgoingMessage::Closed) | None) => {
                self.over = true;
                Poll::Ready(None)
            }
            Poll::Pending => {
                ready!(self.beat.poll_tick(cx));
                Poll::Ready(Some(":\n\n".to_owned()))
            }
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            BodyKind::Whole(body) => Pin::new(body).poll_frame(cx),
            BodyKind::Events(events) => events.poll_next(cx).map(|text| text.map(|text| Ok(Frame::data(text.into())))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyKind::Whole(body) => body.is_end_stream(),
            BodyKind::Events(events) => events.over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyKind::Whole(body) => body.size_hint(),
            BodyKind::Events(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("stream", &matches!(self.0, BodyKind::Events(_))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_say_what_they_can_read() {
        let read = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(value));
            let Accept { json, events } = Accept::read(&headers);
            (json, events)
        };
        assert_eq!(read("application/json, text/event-stream"), (true, true));
        assert_eq!(read("*/*"), (true, true));
        assert_eq!(read("Application/JSON;q=0.5"), (true, false));
        assert_eq!(read("text/event-stream, application/json;q=0"), (false, true));
        assert_eq!(read("text/html"), (false, false));
        assert_eq!(Accept::read(&HeaderMap::new()), Accept { json: true, events: true });
    }
}
