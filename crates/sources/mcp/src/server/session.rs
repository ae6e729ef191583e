//! One legacy client: what it said about itself, and its state between requests.

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

/// Maximum number of resources that one session may watch.
const MAX_WATCHED: usize = 1_000;

/// One legacy client.
#[derive(Debug)]
pub(super) struct Session {
    pub id: Arc<str>,
    pub capabilities: Arc<Value>,
    pub client: Option<Arc<Value>>,
    /// Cancelled when the session ends; cancels its requests.
    pub end: CancellationToken,
    pub client_requests: ClientRequests,
    pub open: OpenRequests,
    /// The pipe to the client, over stdio.
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
        let id = random_id().ok_or_else(|| RpcError::new(CODES.internal, "The system has no random numbers"))?;
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

    /// The lowest level of log messages that the client wants; `None` until it sets one.
    pub fn level(&self) -> Option<LogLevel> {
        self.state().level
    }

    pub fn set_level(&self, level: LogLevel) {
        self.state().level = Some(level);
    }

    /// Checks whether the client may watch one more resource.
    pub fn may_watch(&self, uri: &str) -> Result<(), RpcError> {
        let state = self.state();
        if state.watched.len() >= MAX_WATCHED && !state.watched.contains(uri) {
            let message = format!("A session can subscribe to at most {MAX_WATCHED} resources");
            return Err(RpcError::new(CODES.params, message));
        }
        Ok(())
    }

    /// Notifies the client of changes of a resource from now on.
    pub fn watch(&self, uri: &str) {
        self.state().watched.insert(uri.to_owned());
    }

    pub fn unwatch(&self, uri: &str) {
        self.state().watched.remove(uri);
    }

    /// Returns whether the client wants to know of a change.
    pub fn cares(&self, change: &Change) -> bool {
        match change {
            Change::Resource(uri) => self.state().watched.contains(uri),
            Change::Tools | Change::Prompts | Change::Resources => true,
        }
    }

    /// Every change that this client may have missed.
    pub fn all_changes(&self) -> Vec<Change> {
        Change::LISTS.into_iter().chain(self.state().watched.iter().cloned().map(Change::Resource)).collect()
    }

    /// Opens the session's own stream. Returns `None` if it is already open.
    pub fn open_stream(&self, after: Option<u64>, room: usize) -> Option<mpsc::Receiver<OutgoingMessage>> {
        self.state().stream.open(after, room)
    }

    /// Sends a message on that stream, now or when it is opened.
    pub fn send(&self, text: String) {
        self.state().stream.send(text);
    }

    /// The channel to the client between its requests; `None` while it does not listen.
    pub fn between(&self) -> Option<mpsc::Sender<OutgoingMessage>> {
        match &self.pipe {
            Some(pipe) => pipe.upgrade(),
            None => self.state().stream.stream(),
        }
    }

    /// Closes that stream.
    pub fn close_stream(&self) {
        self.state().stream.close();
    }

    /// Marks the session as active.
    pub fn touch(&self) {
        self.state().touched = Instant::now();
    }

    /// Since when the session is idle, and whether its stream is open. Returns `None` while a request is running.
    pub fn idle_since(&self) -> Option<(bool, Instant)> {
        let state = self.state();
        self.open.is_empty().then(|| (state.stream.is_open(), state.touched))
    }

    /// Cancels the requests of the session, and closes its stream.
    pub fn finish(&self) {
        self.end.cancel();
        self.close_stream();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
