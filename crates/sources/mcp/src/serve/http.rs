//! The server over HTTP: one address for both eras. Who may come in is asked first; then the message says which era it is of.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_mcp_wire::{CODES, Era, HEADERS, META, Message, NotAMessage, RequestId, RpcError};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

use super::hub::{Work, error, in_turn, no_place, settle};
use super::ladder::{self, Caller, meta};
use super::listen::{Filter, Listener};
use super::places::{Address, Full, Holder};
use super::server::Server;
use super::session::Session;
use super::stream::{self, Accept, ReplyBody, empty, refuse};
use super::{guard, legacy, modern};

/// How long the body of a request may take.
const BODY_TIME: Duration = Duration::from_secs(30);
/// What may take long, and is shared among clients.
const CALL: &str = "tools/call";
/// After how many seconds somebody for whom there was no place may try again.
const RETRY_AFTER: &str = "1";

type Reply = Response<ReplyBody>;
/// A reply that ends a request early.
type Refused = Box<Reply>;

impl Server {
    /// Answers one HTTP request, of either era. Which path it came to is for the caller to look at.
    ///
    /// It must be called within a runtime of tokio. Dropping the future or the body of the response tells a request of the newer era that
    /// nobody waits for it any more.
    pub async fn http<B>(&self, request: Request<B>) -> Response<ReplyBody>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        if let Err(reply) = self.check(&head) {
            return *reply;
        }
        let replied = match head.method {
            Method::POST => match self.read(&head, body).await {
                Ok(bytes) => self.post(&head, &bytes).await,
                Err(reply) => Err(reply),
            },
            Method::GET => self.get(&head.headers),
            Method::DELETE => self.delete(&head.headers),
            _ => Err(not_allowed("GET, POST, DELETE")),
        };
        replied.unwrap_or_else(|reply| *reply)
    }

    /// Who may not come in is told so before anything of the request is read.
    fn check(&self, head: &Parts) -> Result<(), Refused> {
        let options = &self.hub.options;
        if let Err(refusal) = guard::check(options, self.bound, head) {
            let mut reply = refuse(refusal.status(), None, error(CODES.request, refusal.message()));
            if let Some(challenge) = refusal.challenge() {
                reply.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
            }
            return Err(Box::new(reply));
        }
        if self.hub.stopping.is_cancelled() {
            return Err(refused(StatusCode::SERVICE_UNAVAILABLE, None, error(super::BUSY, "The server is stopping")));
        }
        Ok(())
    }

    /// Reads the body of a request.
    async fn read<B>(&self, head: &Parts, body: B) -> Result<Bytes, Refused>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let deny = |status, message: &str| refused(status, None, error(CODES.request, message));
        let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
            return Err(deny(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The content type must be `application/json`"));
        }
        let limit = self.hub.options.max_body;
        let too_large = || deny(StatusCode::PAYLOAD_TOO_LARGE, &format!("A request may have {limit} bytes"));
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        match tokio::time::timeout(BODY_TIME, Limited::new(body, limit).collect()).await {
            Ok(Ok(whole)) => Ok(whole.to_bytes()),
            Ok(Err(problem)) if problem.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(deny(StatusCode::BAD_REQUEST, "The request broke off")),
            Err(_) => Err(deny(StatusCode::REQUEST_TIMEOUT, "The request took too long")),
        }
    }

    async fn post(&self, head: &Parts, body: &[u8]) -> Result<Reply, Refused> {
        let headers = &head.headers;
        let accept = Accept::read(headers);
        if !accept.json && !accept.events {
            let problem = error(CODES.request, "The client must accept `application/json` and `text/event-stream`");
            return Err(refused(StatusCode::NOT_ACCEPTABLE, None, problem));
        }
        match Message::read(body).map_err(|problem| no_message(&problem, body))? {
            Message::Request { id, method, params } => match era(headers, &method, params.as_ref()) {
                Era::Modern => self.modern(id, &method, params, head, accept).await,
                Era::Legacy if method == "initialize" => self.initialize(id, params, accept).await,
                Era::Legacy => self.legacy(id, &method, params, head, accept).await,
            },
            // In the newer era nothing is told over HTTP: a request is cancelled by closing its stream.
            Message::Notification { method, params } => {
                if era(headers, &method, params.as_ref()) == Era::Legacy {
                    let session = self.session(headers, None)?;
                    if method == "notifications/cancelled" {
                        session.open.cancel(params.as_ref());
                    }
                }
                Ok(empty(StatusCode::ACCEPTED))
            }
            Message::Response { id, result } => {
                let session = self.session(headers, None)?;
                if let Some(id) = id {
                    session.asks.answer(&id, result);
                }
                Ok(empty(StatusCode::ACCEPTED))
            }
        }
    }

    async fn modern(&self, id: RequestId, method: &str, params: Option<Value>, head: &Parts, accept: Accept) -> Result<Reply, Refused> {
        let hub = &self.hub;
        let deny = |problem: RpcError| refused(ladder::status(problem.code), Some(id.clone()), problem);
        let caller = ladder::climb(method, params.as_ref(), Some(&head.headers), &hub.mirrored).map_err(deny)?;
        let cancel = hub.abort.child_token();
        let (out, rest) = mpsc::channel(hub.options.queue.max(1));
        if method == "subscriptions/listen" {
            if !accept.events {
                let problem = error(CODES.request, "Whoever listens must accept `text/event-stream`");
                return Err(refused(StatusCode::NOT_ACCEPTABLE, Some(id), problem));
            }
            let filter = Filter::read(params.as_ref()).map_err(deny)?;
            let place = hub.listeners.take(holders(head, named(&caller))).map_err(|full| turned_away(full, &id))?;
            let stop = hub.stopping.clone();
            let listener = Listener { hub: hub.clone(), id, caller, out, cancel: cancel.clone(), stop, place };
            tokio::spawn(listener.run(filter));
        } else {
            let place = hub.requests.take(holders(head, named(&caller))).map_err(|full| turned_away(full, &id))?;
            let request = modern::incoming(method, params, &caller, accept.events.then(|| out.clone()), &cancel);
            let (patience, grace) = (hub.options.stall, hub.options.grace);
            let work = Work { id, out, cancel: cancel.clone(), place, begun: None, patience, grace };
            let answer = modern::answer(hub.clone(), request);
            if method == CALL {
                let (turn, cancel) = (work.place.turn(), cancel.clone());
                tokio::spawn(work.run(in_turn(turn, cancel, answer)));
            } else {
                tokio::spawn(work.run(answer));
            }
        }
        Ok(stream::respond(rest, accept, hub.options.keep_alive, ladder::status, Some(cancel.drop_guard())).await)
    }

    async fn initialize(&self, id: RequestId, params: Option<Value>, accept: Accept) -> Result<Reply, Refused> {
        let mut begun = None;
        let work = async {
            let (session, result) = legacy::initialize(&self.hub, params, None)?;
            begun = Some(Arc::new(session));
            Ok(result)
        };
        let result = settle(work).await;
        let session = begun.filter(|_| result.is_ok());
        if let Some(session) = &session
            && !self.hub.sessions.open(session.clone(), &self.hub.abort)
        {
            let problem = error(super::BUSY, "The server has too many sessions that are busy");
            return Err(refused(StatusCode::SERVICE_UNAVAILABLE, Some(id), problem));
        }
        let (out, rest) = mpsc::channel(1);
        let _ = out.try_send(stream::Out::answer(id, result));
        let mut reply = stream::respond(rest, accept, self.hub.options.keep_alive, |_| StatusCode::OK, None).await;
        if let Some(value) = session.and_then(|session| HeaderValue::from_str(&session.id).ok()) {
            reply.headers_mut().insert(HEADERS.session, value);
        }
        Ok(reply)
    }

    async fn legacy(&self, id: RequestId, method: &str, params: Option<Value>, head: &Parts, accept: Accept) -> Result<Reply, Refused> {
        let hub = &self.hub;
        let session = self.session(&head.headers, Some(&id))?;
        let place = hub.requests.take(holders(head, session.id.clone())).map_err(|full| turned_away(full, &id))?;
        let cancel = session.end.child_token();
        let (out, rest) = mpsc::channel(hub.options.queue.max(1));
        let request = legacy::incoming(&session, method, params, accept.events.then(|| out.clone()), &cancel);
        let begun = Some(session.open.begin(id.clone(), cancel.clone()));
        let (patience, grace) = (hub.options.stall, hub.options.grace);
        let work = Work { id, out, cancel, place, begun, patience, grace };
        let answer = legacy::answer(hub.clone(), session, request);
        if method == CALL {
            let (turn, cancel) = (work.place.turn(), work.cancel.clone());
            tokio::spawn(work.run(in_turn(turn, cancel, answer)));
        } else {
            tokio::spawn(work.run(answer));
        }
        // A client that loses its connection has not cancelled anything.
        Ok(stream::respond(rest, accept, hub.options.keep_alive, |_| StatusCode::OK, None).await)
    }

    /// Opens the stream of a session that belongs to no request.
    fn get(&self, headers: &HeaderMap) -> Result<Reply, Refused> {
        if is_modern(headers) {
            return Err(not_allowed("POST"));
        }
        if !Accept::read(headers).events {
            let problem = error(CODES.request, "The client must accept `text/event-stream`");
            return Err(refused(StatusCode::NOT_ACCEPTABLE, None, problem));
        }
        let session = self.session(headers, None)?;
        let after = headers.get(HEADERS.last_event).and_then(|id| id.to_str().ok()?.parse().ok());
        let Some(rest) = session.stand(after, self.hub.options.queue) else {
            let problem = error(CODES.request, "The session has such a stream already");
            return Err(refused(StatusCode::CONFLICT, None, problem));
        };
        Ok(stream::events(None, rest, self.hub.options.keep_alive, None))
    }

    fn delete(&self, headers: &HeaderMap) -> Result<Reply, Refused> {
        if is_modern(headers) {
            return Err(not_allowed("POST"));
        }
        let session = self.session(headers, None)?;
        self.hub.sessions.end(&session.id);
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// The session that a request belongs to.
    fn session(&self, headers: &HeaderMap, id: Option<&RequestId>) -> Result<Arc<Session>, Refused> {
        let deny = |status, message: &str| refused(status, id.cloned(), error(CODES.request, message));
        if let Some(version) = headers.get(HEADERS.version)
            && version.to_str().ok().and_then(Era::of) != Some(Era::Legacy)
        {
            return Err(deny(StatusCode::BAD_REQUEST, "The version in the header is not spoken here"));
        }
        let Some(session) = headers.get(HEADERS.session) else {
            let message = "Send `initialize` first, and then the session with each request, or say in `_meta` which version is spoken";
            return Err(deny(StatusCode::BAD_REQUEST, message));
        };
        let found = session.to_str().ok().and_then(|session| self.hub.sessions.get(session));
        found.ok_or_else(|| deny(StatusCode::NOT_FOUND, "There is no such session (any more); begin a new one with `initialize`"))
    }
}

/// Which era a message is of. A handshake is of the older one, unless everything about it is of the newer one.
fn era(headers: &HeaderMap, method: &str, params: Option<&Value>) -> Era {
    let says = meta(params).is_some_and(|meta| meta.contains_key(META.version));
    let modern = if method == "initialize" { says && is_modern(headers) } else { says || is_modern(headers) };
    if modern { Era::Modern } else { Era::Legacy }
}

fn is_modern(headers: &HeaderMap) -> bool {
    headers.get(HEADERS.version).and_then(|version| Era::of(version.to_str().ok()?)) == Some(Era::Modern)
}

fn no_message(problem: &NotAMessage, body: &[u8]) -> Refused {
    let (id, problem) = misread(problem, body);
    refused(StatusCode::BAD_REQUEST, id, problem)
}

/// What somebody is told who sent something that is no message, and the id where it has one.
pub(super) fn misread(problem: &NotAMessage, body: &[u8]) -> (Option<RequestId>, RpcError) {
    let value = match problem {
        NotAMessage::Json(_) | NotAMessage::Values => return (None, error(CODES.parse, problem.to_string())),
        NotAMessage::Ambiguous { id, inside, reason } => {
            return (id.clone(), error(if *inside { CODES.params } else { CODES.request }, reason));
        }
        NotAMessage::Shape(_) => serde_json::from_slice::<Value>(body).unwrap_or_default(),
    };
    if value.is_array() {
        return (None, error(CODES.request, "Several messages at once are not taken; send them one by one"));
    }
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    (id, error(CODES.request, problem.to_string()))
}

/// Who a request takes its place for.
fn holders(head: &Parts, client: Arc<str>) -> Vec<Holder> {
    let address = head.extensions.get::<Address>().map(|Address(address)| *address);
    [Holder::Client(address, client)].into_iter().chain(address.map(Holder::Address)).collect()
}

/// What a client of the newer era calls itself.
fn named(caller: &Caller) -> Arc<str> {
    caller.client.as_ref().and_then(|client| client.get("name")?.as_str()).unwrap_or_default().into()
}

fn turned_away(full: Full, id: &RequestId) -> Refused {
    let status = match full {
        Full::All => StatusCode::SERVICE_UNAVAILABLE,
        Full::Share => StatusCode::TOO_MANY_REQUESTS,
    };
    let mut reply = refuse(status, Some(id.clone()), no_place(full));
    reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    Box::new(reply)
}

fn not_allowed(methods: &'static str) -> Refused {
    let mut reply = refuse(StatusCode::METHOD_NOT_ALLOWED, None, error(CODES.request, "This method of HTTP is not served here"));
    reply.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    Box::new(reply)
}

fn refused(status: StatusCode, id: Option<RequestId>, problem: RpcError) -> Refused {
    Box::new(refuse(status, id, problem))
}
