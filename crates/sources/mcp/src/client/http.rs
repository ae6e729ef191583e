//! A server over HTTP: each message is posted, and answered with one message or with a stream of them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use helve_fetch::{
    Bytes, ConnectionPool, EventError, Events, Exchange, FetchError, HeaderMap, HeaderName, HeaderValue, Method, Reach, StreamLimits,
    StreamingResponse, Target, Url, header,
};
use helve_mcp_wire::{Era, HEADERS, Message, encode_header, name_of};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::peer::{Outbox, Peer, Waiting};
use super::trouble::Trouble;
use crate::limits::{GREETING, MAX_MESSAGE};
use crate::oauth::Authorizer;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static(HEADERS.method);
const NAME: HeaderName = HeaderName::from_static(HEADERS.name);
/// Of a response that is an error, only this much is read.
pub(super) const MAX_ERROR: u64 = 64 << 10;
/// How long a stream may be silent that is only there in case something happens.
pub(super) const QUIET: Duration = Duration::from_hours(24);
/// How often a stream that broke off is taken up again without anything having come.
const MAX_RESUMES: u32 = 5;
/// How long is waited before that, where the server does not say.
const RESUME: Duration = Duration::from_secs(1);
/// How long is waited for the end of a response that has said what there is to say.
const REST: Duration = Duration::from_secs(1);
const LONGEST_RESUME: Duration = Duration::from_mins(1);
/// How long is waited for the stream of what a server says by itself; some open it only when they have something to say.
const OPENS: Duration = Duration::from_millis(500);
/// How many answers and notifications wait to be posted.
const OUTBOX: usize = 64;
/// How often a server may want another login for one request.
const MAX_CHALLENGES: usize = 8;

/// Where a server is, and what goes with each request.
pub(crate) struct Site {
    url: Url,
    headers: HeaderMap,
    reach: Reach,
    target: Target,
    connections: ConnectionPool,
    /// Who logs in, where no other credentials are known.
    authorizer: Option<Authorizer>,
    /// How long a request may take besides, because a person may be asked to log in.
    pub(crate) slack: Duration,
}

impl Site {
    /// A server at an address, with headers of one's own.
    pub(crate) fn new(
        url: &Url,
        headers: &HeaderMap,
        reach: Reach,
        connections: &ConnectionPool,
        authorizer: Option<Authorizer>,
    ) -> Result<Self, FetchError> {
        let mut headers = headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let target = connections.target(url, &headers, reach)?;
        Ok(Self { url: url.clone(), headers, reach, target, connections: connections.clone(), authorizer, slack: Duration::ZERO })
    }

    /// Another address of the same server, as it names it itself. One elsewhere must not get what is sent here.
    pub(crate) fn beside(&self, address: &str) -> Result<Self, Trouble> {
        let wrong = |why: &dyn std::fmt::Display| Trouble::Protocol(format!("it names an address that cannot be used: {why}"));
        let url = self.url.join(address).map_err(|error| wrong(&error))?;
        if url.origin() != self.url.origin() {
            return Err(wrong(&"it is another server's"));
        }
        let site = Self::new(&url, &self.headers, self.reach, &self.connections, self.authorizer.clone()).map_err(|error| wrong(&error))?;
        Ok(Self { slack: self.slack, ..site })
    }

    /// Sends a request, on someone's behalf where the server wants to know on whose.
    pub(super) async fn send(&self, exchange: Exchange, patience: StreamLimits) -> Result<StreamingResponse, Trouble> {
        match &self.authorizer {
            Some(authorizer) => Box::pin(self.send_for(authorizer, exchange, patience)).await,
            None => Ok(Box::pin(self.connections.send(&self.target, &exchange, patience)).await?),
        }
    }

    async fn send_for(
        &self,
        authorizer: &Authorizer,
        mut exchange: Exchange,
        patience: StreamLimits,
    ) -> Result<StreamingResponse, Trouble> {
        let mut sent = authorizer.header().await;
        for _ in 0..MAX_CHALLENGES {
            if let Some(header) = &sent {
                exchange.headers.insert(header::AUTHORIZATION, header.clone());
            }
            let response = self.connections.send(&self.target, &exchange, patience).await?;
            let connections = response.headers.get_all(header::WWW_AUTHENTICATE);
            let challenge: Vec<&str> = connections.iter().filter_map(|line| line.to_str().ok()).collect();
            let status = response.status.as_u16();
            // Servers refuse for other reasons as well; then no login helps.
            if status != 401 && (status != 403 || challenge.is_empty()) {
                return Ok(response);
            }
            let challenge = (!challenge.is_empty()).then(|| challenge.join(", "));
            let login = authorizer.challenged(status, challenge.as_deref(), sent.as_ref()).await;
            sent = Some(login.map_err(|error| Trouble::Unauthorised(error.to_string()))?);
        }
        Err(Trouble::Unauthorised("it refuses every login".to_owned()))
    }
}

/// One connection to it: a session in the older era, nothing but an address in the newer one.
pub(crate) struct Endpoint {
    site: Arc<Site>,
    peer: Arc<Peer>,
    spoken: RwLock<Spoken>,
    outbox: Arc<Posts>,
    stop: CancellationToken,
}

#[derive(Clone)]
struct Spoken {
    era: Era,
    version: Option<HeaderValue>,
    session: Option<HeaderValue>,
}

pub(super) struct Posts(pub(super) mpsc::Sender<Message>);

impl Outbox for Posts {
    fn put(&self, message: Message) {
        if self.0.try_send(message).is_err() {
            tracing::debug!("a server is too slow to take what it is told; it was dropped");
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.cancel();
        let spoken = self.spoken();
        if let (Some(_), Ok(runtime)) = (&spoken.session, tokio::runtime::Handle::try_current()) {
            // The server can forget the session now; whether it does is its own affair.
            let (site, headers) = (self.site.clone(), spoken.headers());
            runtime.spawn(async move {
                let exchange = Exchange { method: Method::DELETE, headers, body: Bytes::new(), may_repeat: true };
                let _ = site.send(exchange, patience(Some(Duration::from_secs(5)))).await;
            });
        }
    }
}

impl Spoken {
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(version) = &self.version {
            headers.insert(VERSION, version.clone());
        }
        if let Some(session) = &self.session {
            headers.insert(SESSION, session.clone());
        }
        headers
    }
}

impl Endpoint {
    pub(crate) fn new(site: Arc<Site>, peer: &Arc<Peer>) -> Arc<Self> {
        let (sender, mut messages) = mpsc::channel(OUTBOX);
        let spoken = RwLock::new(Spoken { era: Era::Modern, version: None, session: None });
        let stop = CancellationToken::new();
        let endpoint = Arc::new(Self { site, peer: peer.clone(), spoken, outbox: Arc::new(Posts(sender)), stop: stop.clone() });
        let weak = Arc::downgrade(&endpoint);
        tokio::spawn(async move {
            loop {
                let message = tokio::select! {
                    message = messages.recv() => message,
                    () = stop.cancelled() => return,
                };
                let (Some(message), Some(endpoint)) = (message, weak.upgrade()) else { return };
                if let Err(trouble) = endpoint.send(&message).await {
                    tracing::debug!(%trouble, "a server did not take what it was told");
                }
            }
        });
        endpoint
    }

    /// What is said about the version in each request; nothing before a greeting of the older era is over.
    pub(crate) fn set_version(&self, era: Era, version: &str) {
        let mut spoken = self.spoken.write();
        spoken.era = era;
        spoken.version = if version.is_empty() { None } else { HeaderValue::from_str(version).ok() };
    }

    fn spoken(&self) -> Spoken {
        self.spoken.read().clone()
    }

    /// Where answers and notifications are put.
    pub(crate) fn outbox(&self) -> Arc<dyn Outbox> {
        self.outbox.clone()
    }

    /// Posts something that has no response.
    pub(crate) async fn send(&self, message: &Message) -> Result<(), Trouble> {
        let response = self.post(message, &[], Some(GREETING)).await?;
        if !response.status.is_success() {
            return Err(self.refusal(response).await);
        }
        leave(response);
        Ok(())
    }

    /// Posts a request and reads what comes until it is answered.
    pub(crate) async fn request(
        &self,
        request: &Message,
        waiting: &mut Waiting<'_>,
        headers: &[(String, String)],
        time: Option<Duration>,
    ) -> Result<Value, Trouble> {
        let response = self.post(request, headers, time).await?;
        if !response.status.is_success() {
            return Err(self.refusal(response).await);
        }
        self.remember_session(&response);
        if is_stream(&response) {
            return self.follow(response, waiting).await;
        }
        let body = read_all(response, MAX_MESSAGE as u64).await?;
        for message in read_messages(&body)? {
            self.peer.deliver(message, Some(waiting.id), &self.outbox());
        }
        waiting.poll_answer().unwrap_or_else(|| Err(Trouble::Protocol("the response to a request is none".to_owned())))
    }

    async fn post(&self, message: &Message, extra: &[(String, String)], time: Option<Duration>) -> Result<StreamingResponse, Trouble> {
        let spoken = self.spoken();
        let mut headers = spoken.headers();
        if spoken.era == Era::Modern {
            put_standard(&mut headers, message);
            for (name, value) in extra {
                if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                    headers.insert(name, value);
                }
            }
        }
        // Only what the server has not seen may be sent again: a call could do its work twice.
        let exchange = Exchange { method: Method::POST, headers, body: Bytes::from(message.write()), may_repeat: false };
        self.site.send(exchange, patience(time)).await
    }

    fn remember_session(&self, response: &StreamingResponse) {
        let Some(session) = response.headers.get(SESSION) else { return };
        let mut spoken = self.spoken.write();
        if spoken.era == Era::Legacy && spoken.session.is_none() {
            spoken.session = Some(session.clone());
        }
    }

    /// What a response that is no success says.
    async fn refusal(&self, response: StreamingResponse) -> Trouble {
        let status = response.status.as_u16();
        let body = read_all(response, MAX_ERROR).await.unwrap_or_default();
        if status == 404 && self.spoken().session.is_some() {
            return Trouble::Forgotten;
        }
        match Message::read(&body) {
            Ok(Message::Response { result: Err(error), .. }) => Trouble::Refused(error),
            _ => Trouble::status(status, &body),
        }
    }

    /// Reads a stream until the request is answered. In the older era one that breaks off can be taken up again.
    async fn follow(&self, response: StreamingResponse, waiting: &mut Waiting<'_>) -> Result<Value, Trouble> {
        let mut stream = Stream::default();
        let mut response = Some(response);
        let mut resumes = 0;
        loop {
            if let Some(response) = response.take() {
                let came = stream.read(response, &self.peer, Some(&mut *waiting), &self.outbox()).await;
                if let Some(result) = waiting.poll_answer() {
                    return result;
                }
                if came.as_ref().is_ok_and(|count| *count > 0) {
                    resumes = 0;
                }
                let trouble = came.err();
                if stream.events.last_id().is_empty() || self.spoken().era == Era::Modern {
                    return Err(trouble.unwrap_or_else(|| Trouble::Gone("the stream ended before the response".to_owned())));
                }
            }
            resumes += 1;
            if resumes > MAX_RESUMES {
                return Err(Trouble::Gone("the stream broke off again and again before the response".to_owned()));
            }
            tokio::time::sleep(pause(&stream.events, RESUME)).await;
            response = match self.stream(stream.events.last_id()).await {
                Ok(response) if response.status.is_success() && is_stream(&response) => Some(response),
                Ok(response) if response.status.is_client_error() => return Err(self.refusal(response).await),
                Ok(_) | Err(_) => None,
            };
        }
    }

    /// Asks for what the server says by itself, or for the rest of a stream.
    async fn stream(&self, last_id: &str) -> Result<StreamingResponse, Trouble> {
        let mut headers = self.spoken().headers();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let (false, Ok(id)) = (last_id.is_empty(), HeaderValue::from_str(last_id)) {
            headers.insert(LAST_EVENT, id);
        }
        let exchange = Exchange { method: Method::GET, headers, body: Bytes::new(), may_repeat: true };
        let patience = StreamLimits { first_byte: GREETING, idle: QUIET, total: QUIET, bytes: u64::MAX };
        self.site.send(exchange, patience).await
    }

    /// Listens to what a server of the older era says by itself, for as long as the connection stands.
    /// What it asks during a call may come this way, so the first call waits a little until the way is open.
    pub(crate) async fn listen(self: &Arc<Self>) {
        let (weak, stop) = (Arc::downgrade(self), self.stop.clone());
        let (open, is_open) = oneshot::channel();
        let mut open = Some(open);
        tokio::spawn(async move {
            let mut stream = Stream::default();
            let mut delay = RESUME;
            loop {
                let Some(endpoint) = weak.upgrade() else { return };
                let (peer, outbox) = (endpoint.peer.clone(), endpoint.outbox());
                let response = tokio::select! {
                    response = endpoint.stream(stream.events.last_id()) => response,
                    () = stop.cancelled() => return,
                };
                // Whoever waited may have gone on without it.
                let _ = open.take().map(|open| open.send(()));
                match response {
                    Ok(response) if response.status.is_success() && is_stream(&response) => {
                        drop(endpoint);
                        let came = tokio::select! {
                            came = stream.read(response, &peer, None, &outbox) => came,
                            () = stop.cancelled() => return,
                        };
                        if came.is_ok_and(|count| count > 0) {
                            delay = RESUME;
                        }
                    }
                    // Many servers have nothing to say by themselves.
                    Ok(response) if response.status.as_u16() == 404 && endpoint.spoken().session.is_some() => {
                        return peer.end(&Trouble::Forgotten);
                    }
                    Ok(response) if response.status.is_client_error() => return,
                    Ok(_) | Err(_) => {}
                }
                tokio::select! {
                    () = tokio::time::sleep(pause(&stream.events, delay)) => {}
                    () = stop.cancelled() => return,
                }
                delay = (delay * 2).min(LONGEST_RESUME);
            }
        });
        let _ = timeout(OPENS, is_open).await;
    }
}

/// A stream of messages, which may come in several pieces.
#[derive(Default)]
struct Stream {
    events: Events,
}

impl Stream {
    /// Reads until the stream ends, or the request it belongs to is answered. Gives how many messages came.
    async fn read(
        &mut self,
        mut response: StreamingResponse,
        peer: &Arc<Peer>,
        mut waiting: Option<&mut Waiting<'_>>,
        outbox: &Arc<dyn Outbox>,
    ) -> Result<usize, Trouble> {
        let via = waiting.as_ref().map(|waiting| waiting.id);
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
            self.events.feed(&chunk, &mut sink).map_err(of_events)?;
            if waiting.as_mut().is_some_and(|waiting| !waiting.is_open()) {
                leave(response);
                break;
            }
        }
        Ok(count)
    }
}

/// How long a server is left alone before the rest of a stream is asked for. It may say so itself, but not that it wants no rest at all.
fn pause(events: &Events, usual: Duration) -> Duration {
    events.retry().unwrap_or(usual).clamp(usual / 8, LONGEST_RESUME)
}

pub(super) fn of_events(error: EventError<Trouble>) -> Trouble {
    match error {
        EventError::TooLarge => Trouble::TooLarge(MAX_MESSAGE),
        EventError::Sink(trouble) => trouble,
    }
}

pub(super) fn read_messages(text: &[u8]) -> Result<Vec<Message>, Trouble> {
    Message::read_several(text).map_err(|error| Trouble::Protocol(error.to_string()))
}

pub(super) fn is_stream(response: &StreamingResponse) -> bool {
    response.header("content-type").is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

pub(super) async fn read_all(mut response: StreamingResponse, limit: u64) -> Result<Vec<u8>, Trouble> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() as u64 > limit {
            return Err(Trouble::TooLarge(usize::try_from(limit).unwrap_or(usize::MAX)));
        }
    }
    Ok(body)
}

/// Nothing more is wanted of a response. Its end is read all the same if it comes soon, so that the connection can be used again.
fn leave(mut response: StreamingResponse) {
    if matches!(response.chunk().now_or_never(), Some(Ok(None) | Err(_))) {
        return;
    }
    tokio::spawn(timeout(REST, read_all(response, MAX_ERROR)));
}

/// Whoever asks says how long they wait; without that, a day is for ever.
pub(super) fn patience(time: Option<Duration>) -> StreamLimits {
    let time = time.unwrap_or(QUIET);
    // A stream may carry progress of any length before its response; each message is bounded.
    StreamLimits { first_byte: time, idle: time, total: time, bytes: u64::MAX }
}

/// Repeats in headers what those of the newer era repeat of a message.
fn put_standard(headers: &mut HeaderMap, message: &Message) {
    let (method, params) = match message {
        Message::Request { method, params, .. } | Message::Notification { method, params } => (method, params.as_ref()),
        Message::Response { .. } => return,
    };
    if let Ok(value) = HeaderValue::from_str(method) {
        headers.insert(METHOD, value);
    }
    if let Some(Ok(value)) = name_of(method, params).map(|name| HeaderValue::from_str(&encode_header(name))) {
        headers.insert(NAME, value);
    }
}
