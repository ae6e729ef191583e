//! Packs a reply into an HTTP response: in whose wire, in which pieces, how fast, and how far.

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

use super::delivery::{Delivery, Trouble};
use super::failure::Failure;
use super::reply::{Content, Reply};
use super::request::Request;
use super::sse::Event;
use super::wire;

/// A body that is sent piece by piece, and may break.
pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Answers a request. It waits as long as the reply says, which may be for ever.
pub(super) async fn respond(reply: Reply, request: &Request) -> Response<Body> {
    let Reply { content, delivery } = reply;
    if !delivery.before.is_zero() {
        time::sleep(delivery.before).await;
    }
    let parcel = match Parcel::pack(content, &delivery, request) {
        Some(parcel) => parcel,
        None => future::pending().await,
    };
    parcel.response(&delivery).unwrap_or_else(|error| {
        let message = format!("the reply has a status or a header that HTTP does not know: {error}");
        let mut response = Response::new(body(vec![message.into()], false, Duration::ZERO));
        *response.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
        response
    })
}

/// What is sent of a reply.
struct Parcel {
    status: u16,
    content_type: String,
    pieces: Vec<Bytes>,
    /// The length that is announced. Where there is none, each piece is announced by itself.
    length: Option<usize>,
    /// Whether the connection is closed after the last piece.
    cut: bool,
}

impl Parcel {
    /// Nothing, where there is no answer.
    fn pack(content: Content, delivery: &Delivery, request: &Request) -> Option<Self> {
        let framing = if wire::wants_array(request) { Framing::Array } else { Framing::Events };
        let parcel = match content {
            Content::Silence => return None,
            Content::Failure(failure) => {
                let (status, error) = request.wire.failure(&failure);
                let error = if framing == Framing::Array { Value::Array(vec![error]) } else { error };
                Self { status, ..Self::whole(&error) }
            }
            Content::Raw { status, content_type, pieces } => {
                let length = (pieces.len() == 1 && delivery.trouble.is_none()).then(|| pieces[0].len());
                let parcel = Self { status, content_type, pieces, length, cut: false };
                parcel.broken(delivery, request, Framing::Events)
            }
            Content::Events(events) => Self::stream(&events, Framing::Events, delivery).broken(delivery, request, Framing::Events),
            Content::Answer(answer) if request.streaming => {
                let events = request.wire.events(&answer, request);
                Self::stream(&events, framing, delivery).broken(delivery, request, framing)
            }
            Content::Answer(answer) => match &delivery.trouble {
                Some((_, Trouble::Fail(failure))) => Self::whole(&request.wire.failure(failure).1),
                Some((_, Trouble::Cut)) => Self::whole(&request.wire.whole(&answer, request)).halved(),
                Some((_, Trouble::Stop)) | None => Self::whole(&request.wire.whole(&answer, request)),
            },
        };
        Some(parcel)
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

    /// Sends half of what it announces.
    fn halved(mut self) -> Self {
        for piece in &mut self.pieces {
            piece.truncate(piece.len() / 2);
        }
        Self { cut: true, ..self }
    }

    /// Lets happen what the reply wants to happen on the way.
    fn broken(mut self, delivery: &Delivery, request: &Request, framing: Framing) -> Self {
        let Some((after, trouble)) = &delivery.trouble else { return self };
        let next = self.pieces.get(*after).cloned().unwrap_or_default();
        self.pieces.truncate(*after);
        match trouble {
            Trouble::Stop => {}
            Trouble::Cut => {
                self.pieces.push(next.slice(..next.len() / 2));
                self.cut = true;
            }
            Trouble::Fail(failure) => self.pieces.extend(failure_pieces(failure, request, framing, delivery, self.pieces.len())),
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

/// What stands around the events of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// Server-sent events.
    Events,
    /// A JSON array that grows.
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

/// Between two pieces the task is left at least once, so that each is sent before the next is looked at, and before the connection
/// breaks.
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
