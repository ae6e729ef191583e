//! How an answer over HTTP travels: as JSON where nothing was said before it, else as a stream of events that ends with it.
//!
//! The head of a response waits for the first message, because the status depends on it. It does not wait for ever: what lies between the
//! two sides would think that nobody is there.

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

/// One message on its way out.
#[derive(Debug)]
pub(super) enum Out {
    /// Something that comes before an answer, or without one. A stream that can be taken up again numbers it.
    Note { text: String, number: Option<u64> },
    /// The answer, and the code of its error.
    Answer { text: String, code: Option<i64> },
    /// There will be no answer.
    Gone,
}

impl Out {
    pub fn note(method: &str, params: serde_json::Value) -> Self {
        let message = Message::Notification { method: method.to_owned(), params: Some(params) };
        Self::Note { text: message.write(), number: None }
    }

    pub fn answer(id: RequestId, result: Result<serde_json::Value, RpcError>) -> Self {
        let code = result.as_ref().err().map(|error| error.code);
        Self::Answer { text: Message::Response { id: Some(id), result }.write(), code }
    }
}

/// The body of a response.
pub struct ReplyBody(Kind);

enum Kind {
    Whole(Full<Bytes>),
    Events(Box<Events>),
}

/// Messages as events, with a sign of life where there are none.
struct Events {
    first: Option<Out>,
    rest: mpsc::Receiver<Out>,
    beat: Interval,
    over: bool,
    /// Cancels the work when the reader goes away.
    _guard: Option<DropGuard>,
}

/// What a client can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accept {
    pub json: bool,
    pub events: bool,
}

impl Accept {
    /// Reads the header. Where there is none, everything is welcome.
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

/// One kind of content, unless it is named in order to be refused.
fn kind(part: &str) -> Option<String> {
    let mut pieces = part.split(';').map(|piece| piece.trim().to_ascii_lowercase());
    let kind = pieces.next()?;
    let refused = pieces.any(|piece| piece.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0)));
    (!refused).then_some(kind)
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response<ReplyBody> {
    response(status, None, Kind::Whole(Full::default()))
}

/// A response that is one message.
pub(super) fn json(status: StatusCode, text: String) -> Response<ReplyBody> {
    response(status, Some("application/json"), Kind::Whole(Full::new(text.into())))
}

/// A response that refuses.
pub(super) fn refuse(status: StatusCode, id: Option<RequestId>, error: RpcError) -> Response<ReplyBody> {
    json(status, Message::Response { id, result: Err(error) }.write())
}

/// A response that is a stream of events.
pub(super) fn events(first: Option<Out>, rest: mpsc::Receiver<Out>, beat: Duration, guard: Option<DropGuard>) -> Response<ReplyBody> {
    let mut beat = time::interval_at(time::Instant::now() + beat, beat);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let events = Events { first, rest, beat, over: false, _guard: guard };
    let mut response = response(StatusCode::OK, Some("text/event-stream"), Kind::Events(Box::new(events)));
    // Some proxies would keep events back until there are many.
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Waits for the first message, and begins the response that fits it. To a client that reads no events, only the answer may be sent. Dropping the future or the response fires the guard.
pub(super) async fn respond(
    mut out: mpsc::Receiver<Out>,
    accept: Accept,
    beat: Duration,
    status: impl FnOnce(i64) -> StatusCode,
    guard: Option<DropGuard>,
) -> Response<ReplyBody> {
    let patience = if accept.events { beat } else { Duration::MAX };
    match time::timeout(patience, out.recv()).await {
        Ok(Some(Out::Answer { text, code })) if accept.json => json(code.map_or(StatusCode::OK, status), text),
        Ok(Some(Out::Gone) | None) if !accept.events => empty(StatusCode::ACCEPTED),
        Ok(first) => events(Some(first.unwrap_or(Out::Gone)), out, beat, guard),
        Err(_) => events(None, out, beat, guard),
    }
}

fn response(status: StatusCode, kind: Option<&'static str>, body: Kind) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody(body));
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
            Poll::Ready(Some(Out::Note { text, number })) => {
                let number = number.map(|number| format!("id: {number}\n")).unwrap_or_default();
                Poll::Ready(Some(format!("{number}event: message\ndata: {text}\n\n")))
            }
            Poll::Ready(Some(Out::Answer { text, .. })) => {
                self.over = true;
                Poll::Ready(Some(format!("event: message\ndata: {text}\n\n")))
            }
            Poll::Ready(Some(Out::Gone) | None) => {
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

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(body) => Pin::new(body).poll_frame(cx),
            Kind::Events(events) => events.poll_next(cx).map(|text| text.map(|text| Ok(Frame::data(text.into())))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(body) => body.is_end_stream(),
            Kind::Events(events) => events.over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(body) => body.size_hint(),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyBody").field("stream", &matches!(self.0, Kind::Events(_))).finish()
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
