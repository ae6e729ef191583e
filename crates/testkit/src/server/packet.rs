//! Turns a reply into an HTTP response: in which wire format, in which chunks, how fast and how far.

use std::future;
use std::io;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::Response;
use hyper::body::{Bytes, Frame};
use serde_json::Value;
use tokio::{task, time};

use super::delivery::{Delivery, Interruption};
use super::failure::Failure;
use super::reply::{Content, Reply};
use super::request::Request;
use super::sse::Event;
use super::wire;

/// A body that is sent in chunks and may break off.
pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Responds to a request, after the delay of the reply, which may be infinite.
pub(super) async fn respond(reply: Reply, request: &Request) -> Response<Body> {
    let Reply { content, delivery } = reply;
    if !delivery.before.is_zero() {
        time::sleep(delivery.before).await;
    }
    let packet = match Packet::new(content, &delivery, request) {
        Some(packet) => packet,
        None => future::pending().await,
    };
    packet.response(&delivery).unwrap_or_else(|error| {
        let message = format!("the reply has a status or a header that HTTP does not know: {error}");
        let mut response = Response::new(body(vec![message.into()], false, Duration::ZERO));
        *response.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
        response
    })
}

/// The HTTP response of a reply.
struct Packet {
    status: u16,
    content_type: String,
    pieces: Vec<Bytes>,
    /// The `Content-Length`; chunked encoding if `None`.
    length: Option<usize>,
    /// Whether the connection closes after the last chunk.
    cut: bool,
}

impl Packet {
    /// Returns `None` if the reply is silence.
    fn new(content: Content, delivery: &Delivery, request: &Request) -> Option<Self> {
        let framing = if wire::wants_array(request) { Framing::Array } else { Framing::Events };
        let packet = match content {
            Content::Silence => return None,
            Content::Failure(failure) => {
                let (status, error) = request.wire.failure(&failure);
                let error = if framing == Framing::Array { Value::Array(vec![error]) } else { error };
                Self { status, ..Self::whole(&error) }
            }
            Content::Raw { status, content_type, pieces } => {
                let length = (pieces.len() == 1 && delivery.interruption.is_none()).then(|| pieces[0].len());
                let packet = Self { status, content_type, pieces, length, cut: false };
                packet.broken(delivery, request, Framing::Events)
            }
            Content::Events(events) => Self::stream(&events, Framing::Events, delivery).broken(delivery, request, Framing::Events),
            Content::Output(output) if request.streaming => {
                let events = request.wire.events(&output, request);
                Self::stream(&events, framing, delivery).broken(delivery, request, framing)
            }
            Content::Output(output) => match &delivery.interruption {
                Some((_, Interruption::Fail(failure))) => Self::whole(&request.wire.failure(failure).1),
                Some((_, Interruption::Cut)) => Self::whole(&request.wire.whole(&output, request)).halved(),
                Some((_, Interruption::Stop)) | None => Self::whole(&request.wire.whole(&output, request)),
            },
        };
        Some(packet)
    }

    fn whole(value: &Value) -> Self {
        let text = Bytes::from(value.to_string());
        Self { status: 200, content_type: "application/json".to_owned(), length: Some(text.len()), pieces: vec![text], cut: false }
    }

    fn stream(events: &[Event], framing: Framing, delivery: &Delivery) -> Self {
        let mut pieces: Vec<Bytes> = events.iter().enumerate().map(|(at, event)| framing.write(at, event, delivery)).collect();
        if framing == Framing::Array {
            pieces.push("]".into());
        }
        Self { status: 200, content_type: framing.content_type().to_owned(), pieces, length: None, cut: false }
    }

    /// Sends half of the announced body.
    fn halved(mut self) -> Self {
        for piece in &mut self.pieces {
            piece.truncate(piece.len() / 2);
        }
        Self { cut: true, ..self }
    }

    /// Applies the interruption of the reply.
    fn broken(mut self, delivery: &Delivery, request: &Request, framing: Framing) -> Self {
        let Some((after, interruption)) = &delivery.interruption else { return self };
        let next = self.pieces.get(*after).cloned().unwrap_or_default();
        self.pieces.truncate(*after);
        match interruption {
            Interruption::Stop => {}
            Interruption::Cut => {
                self.pieces.push(next.slice(..next.len() / 2));
                self.cut = true;
            }
            Interruption::Fail(failure) => self.pieces.extend(failure_pieces(failure, request, framing, delivery, self.pieces.len())),
        }
        self
    }

    fn response(self, delivery: &Delivery) -> Result<Response<Body>, hyper::http::Error> {
        let given = |name: &str| delivery.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let mut response = Response::builder().status(delivery.status.unwrap_or(self.status));
        if !given("content-type") {
            response = response.header("content-type", self.content_type);
        }
        if let Some(length) = self.length.filter(|_| !given("content-length")) {
            response = response.header("content-length", length);
        }
        for (name, value) in &delivery.headers {
            response = response.header(name, value);
        }
        let pieces = match delivery.bytes {
            Some(bytes) => self.pieces.concat().chunks(bytes).map(Bytes::copy_from_slice).collect(),
            None => self.pieces,
        };
        response.body(body(pieces, self.cut, delivery.between))
    }
}

/// The format around the events of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// Server-sent events.
    Events,
    /// A streamed JSON array.
    Array,
}

impl Framing {
    fn write(self, at: usize, event: &Event, delivery: &Delivery) -> Bytes {
        match self {
            Self::Events => delivery.style.write(event),
            Self::Array => Bytes::from(format!("{}{}", if at == 0 { "[" } else { ",\r\n" }, event.data)),
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Array => "application/json",
        }
    }
}

fn failure_pieces(failure: &Failure, request: &Request, framing: Framing, delivery: &Delivery, after: usize) -> Vec<Bytes> {
    let events = request.wire.failure_events(failure, request, after);
    let mut pieces: Vec<_> = events.iter().enumerate().map(|(at, event)| framing.write(after + at, event, delivery)).collect();
    if framing == Framing::Array {
        pieces.push("]".into());
    }
    pieces
}

/// Yields between two chunks, so that each one is sent before the next one is polled and before the connection breaks.
fn body(pieces: Vec<Bytes>, cut: bool, between: Duration) -> Body {
    let end = cut.then(|| Err(io::Error::new(io::ErrorKind::ConnectionAborted, "cut by the script")));
    let steps = pieces.into_iter().map(Ok).chain(end).enumerate();
    let frames = stream::iter(steps).then(move |(at, step)| async move {
        if at > 0 && !between.is_zero() {
            time::sleep(between).await;
        } else {
            task::yield_now().await;
        }
        step.map(Frame::data)
    });
    UnsyncBoxBody::new(StreamBody::new(frames))
}
