//! One client of the older era: what it said about itself, and what is kept for it between its requests.

use std::collections::HashSet;
use std::sync::Arc;

use helve_mcp_wire::{CODES, Message, RpcError};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Change;
use super::asks::Asks;
use super::hub::error;
use super::level::Level;
use super::open::Open;
use super::standing::Standing;
use super::stream::Out;
use crate::unguessable::unguessable;

/// Resources that one session may watch.
const MAX_WATCHED: usize = 1_000;

/// One client of the older era.
#[derive(Debug)]
pub(super) struct Session {
    pub id: Arc<str>,
    pub capabilities: Arc<Value>,
    pub client: Option<Arc<Value>>,
    /// Fires when the session ends, and cancels what runs in it.
    pub end: CancellationToken,
    pub asks: Asks,
    pub open: Open,
    /// The pipe to the client, where it is at the end of one.
    pipe: Option<mpsc::WeakSender<Out>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    touched: Instant,
    level: Option<Level>,
    watched: HashSet<String>,
    standing: Standing,
}

impl Session {
    /// A session with an id that nobody can guess.
    pub fn new(
        capabilities: Value,
        client: Option<Value>,
        end: CancellationToken,
        pipe: Option<&mpsc::Sender<Out>>,
    ) -> Result<Self, RpcError> {
        let id = unguessable().ok_or_else(|| error(CODES.internal, "The machine has no random numbers"))?;
        let state = State { touched: Instant::now(), level: None, watched: HashSet::new(), standing: Standing::default() };
        Ok(Self {
            id: id.into(),
            capabilities: Arc::new(capabilities),
            client: client.map(Arc::new),
            end,
            asks: Asks::default(),
            open: Open::default(),
            pipe: pipe.map(mpsc::Sender::downgrade),
            state: Mutex::new(state),
        })
    }

    /// Whether the client says that it can do something.
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(Value::is_object)
    }

    /// From which level on the client wants logs; nothing until it says so.
    pub fn level(&self) -> Option<Level> {
        self.state().level
    }

    pub fn set_level(&self, level: Level) {
        self.state().level = Some(level);
    }

    /// Whether the client may watch one more resource.
    pub fn may_watch(&self, uri: &str) -> Result<(), RpcError> {
        let state = self.state();
        if state.watched.len() >= MAX_WATCHED && !state.watched.contains(uri) {
            let message = format!("A session can subscribe to {MAX_WATCHED} resources at most");
            return Err(error(CODES.params, message));
        }
        Ok(())
    }

    /// Tells the client of changes of a resource from now on.
    pub fn watch(&self, uri: &str) {
        self.state().watched.insert(uri.to_owned());
    }

    pub fn unwatch(&self, uri: &str) {
        self.state().watched.remove(uri);
    }

    /// Whether the client wants to know of a change.
    pub fn cares(&self, change: &Change) -> bool {
        match change {
            Change::Resource(uri) => self.state().watched.contains(uri),
            Change::Tools | Change::Prompts | Change::Resources => true,
        }
    }

    /// Everything that this client may have missed.
    pub fn all_changes(&self) -> Vec<Change> {
        let lists = [Change::Tools, Change::Prompts, Change::Resources];
        lists.into_iter().chain(self.state().watched.iter().cloned().map(Change::Resource)).collect()
    }

    /// Opens the stream that belongs to no request; nothing where it is open already.
    pub fn stand(&self, after: Option<u64>, room: usize) -> Option<mpsc::Receiver<Out>> {
        self.state().standing.open(after, room)
    }

    /// Says something on that stream, now or when it is opened.
    pub fn tell(&self, text: String) {
        self.state().standing.tell(text);
    }

    /// Where the client hears something between its requests; nowhere while it does not listen.
    pub fn between(&self) -> Option<mpsc::Sender<Out>> {
        match &self.pipe {
            Some(pipe) => pipe.upgrade(),
            None => self.state().standing.stream(),
        }
    }

    /// Ends that stream.
    pub fn hush(&self) {
        self.state().standing.close();
    }

    /// Something happens in the session.
    pub fn touch(&self) {
        self.state().touched = Instant::now();
    }

    /// Since when nothing happens in the session, and whether the client still reads its stream; nothing while a request is worked on.
    pub fn idle_since(&self) -> Option<(bool, Instant)> {
        let state = self.state();
        self.open.is_empty().then(|| (state.standing.is_open(), state.touched))
    }

    /// Ends what runs in the session, and its stream.
    pub fn finish(&self) {
        self.end.cancel();
        self.hush();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// How a change is told: the method and the parameters.
pub(super) fn describe(change: &Change) -> (&'static str, Value) {
    match change {
        Change::Tools => ("notifications/tools/list_changed", json!({})),
        Change::Prompts => ("notifications/prompts/list_changed", json!({})),
        Change::Resources => ("notifications/resources/list_changed", json!({})),
        Change::Resource(uri) => ("notifications/resources/updated", json!({"uri": uri})),
    }
}

/// A change as a message.
pub(super) fn notice(change: &Change) -> String {
    let (method, params) = describe(change);
    Message::Notification { method: method.to_owned(), params: Some(params) }.write()
}

/// Whether a server that can do this tells of such changes.
pub(super) fn declares(capabilities: &Value, change: &Change) -> bool {
    let (group, flag) = match change {
        Change::Tools => ("tools", "listChanged"),
        Change::Prompts => ("prompts", "listChanged"),
        Change::Resources => ("resources", "listChanged"),
        Change::Resource(_) => ("resources", "subscribe"),
    };
    capabilities.get(group).and_then(|group| group.get(flag)) == Some(&Value::Bool(true))
}
