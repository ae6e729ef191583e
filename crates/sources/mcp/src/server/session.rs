//! The session of a legacy client: its identity, and its state between requests.

use std::collections::HashSet;
use std::sync::Arc;

use helve_mcp_wire::{CODES, Change, RpcError};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::client_requests::ClientRequests;
use super::log_level::LogLevel;
use super::open_requests::OpenRequests;
use super::response::OutgoingMessage;
use super::session_stream::SessionStream;
use crate::random::random_id;

/// Maximum number of resources that a session may watch.
const MAX_WATCHED: usize = 1_000;

/// The session of a legacy client.
#[derive(Debug)]
pub(super) struct Session {
    pub id: Arc<str>,
    pub capabilities: Arc<Value>,
    pub client: Option<Arc<Value>>,
    /// The token that is cancelled when the session ends. Cancels the requests of the session.
    pub end: CancellationToken,
    pub client_requests: ClientRequests,
    pub open: OpenRequests,
    /// The queue of messages to the client over stdio; `None` over HTTP.
    pipe: Option<mpsc::WeakSender<OutgoingMessage>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    touched: Instant,
    level: Option<LogLevel>,
    watched: HashSet<String>,
    stream: SessionStream,
}

impl Session {
    /// Creates a session with a random id.
    pub fn new(
        capabilities: Value,
        client: Option<Value>,
        end: CancellationToken,
        pipe: Option<&mpsc::Sender<OutgoingMessage>>,
    ) -> Result<Self, RpcError> {
        let id = random_id().ok_or_else(|| RpcError::new(CODES.internal, "The system cannot generate random numbers"))?;
        let state = State { touched: Instant::now(), level: None, watched: HashSet::new(), stream: SessionStream::default() };
        Ok(Self {
            id: id.into(),
            capabilities: Arc::new(capabilities),
            client: client.map(Arc::new),
            end,
            client_requests: ClientRequests::default(),
            open: OpenRequests::default(),
            pipe: pipe.map(mpsc::Sender::downgrade),
            state: Mutex::new(state),
        })
    }

    /// Returns whether the client declares a capability.
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(Value::is_object)
    }

    /// Returns the lowest level of log messages that the client wants, or `None` if the client has not set a level.
    pub fn level(&self) -> Option<LogLevel> {
        self.state().level
    }

    pub fn set_level(&self, level: LogLevel) {
        self.state().level = Some(level);
    }

    /// Returns an error if the client may not watch another resource.
    pub fn may_watch(&self, uri: &str) -> Result<(), RpcError> {
        let state = self.state();
        if state.watched.len() >= MAX_WATCHED && !state.watched.contains(uri) {
            let message = format!("A session can subscribe to at most {MAX_WATCHED} resources");
            return Err(RpcError::new(CODES.params, message));
        }
        Ok(())
    }

    /// Records that the client watches a resource.
    pub fn watch(&self, uri: &str) {
        self.state().watched.insert(uri.to_owned());
    }

    pub fn unwatch(&self, uri: &str) {
        self.state().watched.remove(uri);
    }

    /// Returns whether the client must be notified of a change.
    pub fn cares(&self, change: &Change) -> bool {
        match change {
            Change::Resource(uri) => self.state().watched.contains(uri),
            Change::Tools | Change::Prompts | Change::Resources => true,
        }
    }

    /// Returns every change that the client may have missed.
    pub fn all_changes(&self) -> Vec<Change> {
        Change::LISTS.into_iter().chain(self.state().watched.iter().cloned().map(Change::Resource)).collect()
    }

    /// Opens the session's own stream, or resumes it after the message with the number `after`. Returns `None` if a stream is already open
    /// and `after` is `None`.
    pub fn open_stream(&self, after: Option<u64>, room: usize) -> Option<mpsc::Receiver<OutgoingMessage>> {
        self.state().stream.open(after, room)
    }

    /// Sends a message on the session's own stream, now or when the stream is opened.
    pub fn send(&self, text: String) {
        self.state().stream.send(text);
    }

    /// Returns the queue of messages to the client between its requests, or `None` if the client does not listen.
    pub fn between(&self) -> Option<mpsc::Sender<OutgoingMessage>> {
        match &self.pipe {
            Some(pipe) => pipe.upgrade(),
            None => self.state().stream.stream(),
        }
    }

    /// Closes the session's own stream.
    pub fn close_stream(&self) {
        self.state().stream.close();
    }

    /// Marks the session as active.
    pub fn touch(&self) {
        self.state().touched = Instant::now();
    }

    /// Returns whether the session's own stream is open, and since when the session is idle. Returns `None` while a request is running.
    pub fn idle_since(&self) -> Option<(bool, Instant)> {
        let state = self.state();
        self.open.is_empty().then(|| (state.stream.is_open(), state.touched))
    }

    /// Ends the session: cancels its requests, and closes its stream.
    pub fn finish(&self) {
        self.end.cancel();
        self.close_stream();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
