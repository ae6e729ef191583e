//! Serves HTTP requests of both eras at one endpoint. Checks access first, then determines the era from the message.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_mcp_wire::{CODES, Era, HEADERS, Message, MessageError, Meta, RequestId, RpcError};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

use super::handle::Server;
use super::hub::{RunningRequest, in_turn, no_slot, settle};
use super::modern_checks::{self, ModernClient};
use super::response::{Accept, OutgoingMessage, ResponseBody, empty, events, refuse, respond};
use super::session::Session;
use super::slots::{Address, CapacityError, SlotOwner};
use super::subscriptions::{ChangeListener, Filter};
use super::{guard, legacy, modern};

/// Timeout for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(30);
/// The method that may take long, so that the number of concurrent requests per client is limited.
const CALL: &str = "tools/call";
/// Seconds after which a rejected client may retry.
const RETRY_AFTER: &str = "1";

type HttpResponse = Response<ResponseBody>;
/// An error response that is sent without running the request.
type EarlyResponse = Box<HttpResponse>;
type HttpResult = Result<HttpResponse, EarlyResponse>;

impl Server {
    /// Handles one HTTP request of either era. The caller must check the path.
    ///
    /// Must be called within a Tokio runtime. Dropping the future or the body of the response cancels a request of the modern era.
    pub async fn http<B>(&self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        if let Err(response) = self.check(&head) {
            return *response;
        }
        let result = match head.method {
            Method::POST => match self.read(&head, body).await {
                Ok(bytes) => self.post(&head, &bytes).await,
                Err(response) => Err(response),
            },
            Method::GET => self.get(&head.headers),
            Method::DELETE => self.delete(&head.headers),
            _ => Err(not_allowed("GET, POST, DELETE")),
        };
        result.unwrap_or_else(|response| *response)
    }

    /// Checks access before the body of the request is read.
    fn check(&self, head: &Parts) -> Result<(), EarlyResponse> {
        let options = &self.hub.options;
        if let Err(refusal) = guard::check(options, self.bound, head) {
            let mut response = refuse(refusal.status(), None, RpcError::new(CODES.request, refusal.message()));
            if let Some(challenge) = refusal.challenge() {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
            }
            return Err(Box::new(response));
        }
        if self.hub.stopping.is_cancelled() {
            return Err(refused(StatusCode::SERVICE_UNAVAILABLE, None, RpcError::new(super::BUSY, "The server is stopping")));
        }
        Ok(())
    }

    /// Checks the content type of a request, and reads the body.
    async fn read<B>(&self, head: &Parts, body: B) -> Result<Bytes, EarlyResponse>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let deny = |status, message: &str| refused(status, None, RpcError::new(CODES.request, message));
        let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
            return Err(deny(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The content type must be `application/json`"));
        }
        let limit = self.hub.options.max_body;
        let too_large = || deny(StatusCode::PAYLOAD_TOO_LARGE, &format!("The request is larger than {limit} bytes"));
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        match tokio::time::timeout(BODY_TIME, Limited::new(body, limit).collect()).await {
            Ok(Ok(whole)) => Ok(whole.to_bytes()),
            Ok(Err(problem)) if problem.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(deny(StatusCode::BAD_REQUEST, "The request body is incomplete")),
            Err(_) => Err(deny(StatusCode::REQUEST_TIMEOUT, "The request body timed out")),
        }
    }

    async fn post(&self, head: &Parts, body: &[u8]) -> HttpResult {
        let headers = &head.headers;
        let accept = Accept::read(headers);
        if !accept.json && !accept.events {
            let problem = RpcError::new(CODES.request, "The client must accept `application/json` and `text/event-stream`");
            return Err(refused(StatusCode::NOT_ACCEPTABLE, None, problem));
        }
        match Message::read(body).map_err(|problem| no_message(&problem, body))? {
            Message::Request { id, method, params } => match era(headers, &method, params.as_ref()) {
                Era::Modern => self.modern(id, &method, params, head, accept).await,
                Era::Legacy if method == "initialize" => self.initialize(id, params, accept).await,
                Era::Legacy => self.legacy(id, &method, params, head, accept).await,
            },
            // The modern era has no notifications over HTTP: a client cancels a request by closing its stream.
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
                    session.client_requests.respond(&id, result);
                }
                Ok(empty(StatusCode::ACCEPTED))
            }
        }
    }

    async fn modern(&self, id: RequestId, method: &str, params: Option<Value>, head: &Parts, accept: Accept) -> HttpResult {
        let hub = &self.hub;
        let deny = |problem: RpcError| refused(modern_checks::status(problem.code), Some(id.clone()), problem);
        let caller = modern_checks::check(method, params.as_ref(), Some(&head.headers), &hub.header_params).map_err(deny)?;
        let cancel = hub.abort.child_token();
        let (out, rest) = mpsc::channel(hub.options.queue.max(1));
        if method == "subscriptions/listen" {
            if !accept.events {
                let problem = RpcError::new(CODES.request, "`subscriptions/listen` requires a client that accepts `text/event-stream`");
                return Err(refused(StatusCode::NOT_ACCEPTABLE, Some(id), problem));
            }
            let filter = Filter::read(params.as_ref()).map_err(deny)?;
            let slot = hub.listeners.take(owners(head, client_name(&caller))).map_err(|full| at_capacity(full, &id))?;
            let stop = hub.stopping.clone();
            let listener = ChangeListener { hub: hub.clone(), id, caller, out, cancel: cancel.clone(), stop, slot };
            tokio::spawn(listener.run(filter));
        } else {
            let slot = hub.requests.take(owners(head, client_name(&caller))).map_err(|full| at_capacity(full, &id))?;
            let request = modern::incoming(method, params, &caller, accept.events.then(|| out.clone()), &cancel);
            let work =
                RunningRequest { id, out, cancel: cancel.clone(), slot, open: None, patience: hub.options.stall, grace: hub.options.grace };
            start(work, method, modern::respond(hub.clone(), request));
        }
        Ok(respond(rest, accept, hub.options.keep_alive, modern_checks::status, Some(cancel.drop_guard())).await)
    }

    async fn initialize(&self, id: RequestId, params: Option<Value>, accept: Accept) -> HttpResult {
        let mut session = None;
        let work = async {
            let (started, result) = legacy::initialize(&self.hub, params, None)?;
            session = Some(Arc::new(started));
            Ok(result)
        };
        let result = settle(work).await;
        let session = session.filter(|_| result.is_ok());
        if let Some(session) = &session
            && !self.hub.sessions.open(session.clone(), &self.hub.abort)
        {
            let problem = RpcError::new(super::BUSY, "The server has too many busy sessions");
            return Err(refused(StatusCode::SERVICE_UNAVAILABLE, Some(id), problem));
        }
        let (out, rest) = mpsc::channel(1);
        let _ = out.try_send(OutgoingMessage::response(id, result));
        let mut response = respond(rest, accept, self.hub.options.keep_alive, |_| StatusCode::OK, None).await;
        if let Some(value) = session.and_then(|session| HeaderValue::from_str(&session.id).ok()) {
            response.headers_mut().insert(HEADERS.session, value);
        }
        Ok(response)
    }

    async fn legacy(&self, id: RequestId, method: &str, params: Option<Value>, head: &Parts, accept: Accept) -> HttpResult {
        let hub = &self.hub;
        let session = self.session(&head.headers, Some(&id))?;
        let slot = hub.requests.take(owners(head, session.id.clone())).map_err(|full| at_capacity(full, &id))?;
        let cancel = session.end.child_token();
        let (out, rest) = mpsc::channel(hub.options.queue.max(1));
        let request = legacy::incoming(&session, method, params, accept.events.then(|| out.clone()), &cancel);
        let open = Some(session.open.begin(id.clone(), cancel.clone()));
        let work = RunningRequest { id, out, cancel, slot, open, patience: hub.options.stall, grace: hub.options.grace };
        start(work, method, legacy::respond(hub.clone(), session, request));
        // In the legacy era, closing the connection does not cancel the request.
        Ok(respond(rest, accept, hub.options.keep_alive, |_| StatusCode::OK, None).await)
    }

    /// Opens the session's own stream, or resumes it.
    fn get(&self, headers: &HeaderMap) -> HttpResult {
        if is_modern(headers) {
            return Err(not_allowed("POST"));
        }
        if !Accept::read(headers).events {
            let problem = RpcError::new(CODES.request, "The client must accept `text/event-stream`");
            return Err(refused(StatusCode::NOT_ACCEPTABLE, None, problem));
        }
        let session = self.session(headers, None)?;
        let after = headers.get(HEADERS.last_event).and_then(|id| id.to_str().ok()?.parse().ok());
        let Some(rest) = session.open_stream(after, self.hub.options.queue) else {
            let problem = RpcError::new(CODES.request, "The session already has an open stream");
            return Err(refused(StatusCode::CONFLICT, None, problem));
        };
        Ok(events(None, rest, self.hub.options.keep_alive, None))
    }

    fn delete(&self, headers: &HeaderMap) -> HttpResult {
        if is_modern(headers) {
            return Err(not_allowed("POST"));
        }
        let session = self.session(headers, None)?;
        self.hub.sessions.end(&session.id);
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// Returns the session that the headers name.
    fn session(&self, headers: &HeaderMap, id: Option<&RequestId>) -> Result<Arc<Session>, EarlyResponse> {
        let deny = |status, message: &str| refused(status, id.cloned(), RpcError::new(CODES.request, message));
        if let Some(version) = headers.get(HEADERS.version)
            && version.to_str().ok().and_then(Era::of) != Some(Era::Legacy)
        {
            return Err(deny(StatusCode::BAD_REQUEST, "The protocol version in the header is not supported"));
        }
        let Some(session) = headers.get(HEADERS.session) else {
            let message = "Send `initialize` first and the session id with each request, or state the protocol version in `_meta`";
            return Err(deny(StatusCode::BAD_REQUEST, message));
        };
        let found = session.to_str().ok().and_then(|session| self.hub.sessions.get(session));
        found.ok_or_else(|| deny(StatusCode::NOT_FOUND, "The session does not exist or has expired; start a new one with `initialize`"))
    }
}

/// Runs a request in a separate task. Limits how many tool calls of one client run at the same time.
fn start(work: RunningRequest, method: &str, response: impl Future<Output = Result<Value, RpcError>> + Send + 'static) {
    if method == CALL {
        let (turn, cancel) = (work.slot.turn(), work.cancel.clone());
        tokio::spawn(work.run(in_turn(turn, cancel, response)));
    } else {
        tokio::spawn(work.run(response));
    }
}

/// Returns the era of a message. `initialize` is legacy, unless both its headers and its `_meta` are modern.
fn era(headers: &HeaderMap, method: &str, params: Option<&Value>) -> Era {
    let says = Meta::of(params).is_some_and(Meta::has_version);
    let modern = if method == "initialize" { says && is_modern(headers) } else { says || is_modern(headers) };
    if modern { Era::Modern } else { Era::Legacy }
}

fn is_modern(headers: &HeaderMap) -> bool {
    headers.get(HEADERS.version).and_then(|version| Era::of(version.to_str().ok()?)) == Some(Era::Modern)
}

fn no_message(problem: &MessageError, body: &[u8]) -> EarlyResponse {
    let (id, problem) = misread(problem, body);
    refused(StatusCode::BAD_REQUEST, id, problem)
}

/// Returns the error for a text that is not a valid message, and the id of the message if it is known.
pub(super) fn misread(problem: &MessageError, body: &[u8]) -> (Option<RequestId>, RpcError) {
    let value = match problem {
        MessageError::Json(_) | MessageError::Values => return (None, RpcError::new(CODES.parse, problem.to_string())),
        MessageError::Ambiguous { id, inside, reason } => {
            return (id.clone(), RpcError::new(if *inside { CODES.params } else { CODES.request }, reason));
        }
        _ => serde_json::from_slice::<Value>(body).unwrap_or_default(),
    };
    if value.is_array() {
        return (None, RpcError::new(CODES.request, "Batches are not supported; send one message per request"));
    }
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    (id, RpcError::new(CODES.request, problem.to_string()))
}

/// Returns the owners of a request's slot: the client, and its address if known.
fn owners(head: &Parts, client: Arc<str>) -> Vec<SlotOwner> {
    let address = head.extensions.get::<Address>().map(|Address(address)| *address);
    [SlotOwner::Client(address, client)].into_iter().chain(address.map(SlotOwner::Address)).collect()
}

/// Returns the name of a modern client; empty if it states none.
fn client_name(caller: &ModernClient) -> Arc<str> {
    caller.client.as_ref().and_then(|client| client.get("name")?.as_str()).unwrap_or_default().into()
}

fn at_capacity(full: CapacityError, id: &RequestId) -> EarlyResponse {
    let status = match full {
        CapacityError::All => StatusCode::SERVICE_UNAVAILABLE,
        CapacityError::Share => StatusCode::TOO_MANY_REQUESTS,
    };
    let mut response = refuse(status, Some(id.clone()), no_slot(full));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    Box::new(response)
}

fn not_allowed(methods: &'static str) -> EarlyResponse {
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, None, RpcError::new(CODES.request, "This HTTP method is not supported"));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    Box::new(response)
}

fn refused(status: StatusCode, id: Option<RequestId>, problem: RpcError) -> EarlyResponse {
    Box::new(refuse(status, id, problem))
}
