//! The table of all legacy sessions over HTTP. Limits their number, and ends idle sessions.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use helve_mcp_wire::{Change, Era};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::Backend;
use super::session::Session;

/// Maximum interval between checks for idle sessions.
const SWEEP_INTERVAL: Duration = Duration::from_mins(1);

/// All legacy sessions over HTTP.
pub(super) struct SessionTable {
    backend: Arc<dyn Backend>,
    max: usize,
    idle: Duration,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<Arc<str>, Arc<Session>>,
    /// Whether the maintenance task has been started.
    maintained: bool,
    /// Whether the server has stopped, so that no session may be opened.
    closed: bool,
}

impl SessionTable {
    pub fn new(backend: Arc<dyn Backend>, max: usize, idle: Duration) -> Arc<Self> {
        Arc::new(Self { backend, max, idle, table: Mutex::default() })
    }

    /// Adds a session. If there are too many, ends the session that has been idle the longest. Returns `false` if no session is idle, or if
    /// the server has stopped.
    pub fn open(self: &Arc<Self>, session: Arc<Session>, stop: &CancellationToken) -> bool {
        let mut table = self.table();
        if table.closed {
            return false;
        }
        let mut ended = None;
        if table.sessions.len() >= self.max {
            // Prefers sessions without an open stream.
            let idle = table.sessions.values().filter_map(|session| Some((session.idle_since()?, session.id.clone())));
            let Some((_, oldest)) = idle.min_by_key(|(since, _)| *since) else { return false };
            ended = table.sessions.remove(&oldest);
        }
        table.sessions.insert(session.id.clone(), session);
        let maintained = std::mem::replace(&mut table.maintained, true);
        drop(table);
        if !maintained {
            tokio::spawn(maintain(Arc::downgrade(self), self.backend.changes(), self.idle, stop.clone()));
        }
        if let Some(session) = ended {
            self.finish(&session);
        }
        true
    }

    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.table().sessions.get(id).cloned()?;
        session.touch();
        Some(session)
    }

    /// Ends a session. Returns whether the session existed.
    pub fn end(&self, id: &str) -> bool {
        let ended = self.table().sessions.remove(id);
        ended.inspect(|session| self.finish(session)).is_some()
    }

    /// Closes the streams of all sessions, but does not cancel their requests.
    pub fn close_streams(&self) {
        self.all().iter().for_each(|session| session.close_stream());
    }

    /// Ends all sessions, and rejects new ones.
    pub fn end_all(&self) {
        let ended = {
            let mut table = self.table();
            table.closed = true;
            std::mem::take(&mut table.sessions)
        };
        for session in ended.values() {
            self.finish(session);
        }
    }

    /// Notifies each session of those changes that its client wants and the server declares.
    fn tell(&self, changes: &dyn Fn(&Session) -> Vec<Change>) {
        let capabilities = self.backend.capabilities(Era::Legacy);
        for session in self.all() {
            let changes = changes(&session).into_iter().filter(|change| session.cares(change) && change.is_declared(&capabilities));
            changes.for_each(|change| session.send(change.write()));
        }
    }

    fn end_idle(&self) {
        for session in self.all() {
            match session.idle_since() {
                Some((false, since)) if since.elapsed() >= self.idle => {
                    self.end(&session.id);
                }
                Some((false, _)) => {}
                // A client that reads a stream, or waits for a response, is active.
                Some((true, _)) | None => session.touch(),
            }
        }
    }

    fn finish(&self, session: &Session) {
        session.finish();
        end_session(&*self.backend, &session.id);
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.table().sessions.values().cloned().collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

/// Notifies the backend that a session has ended.
pub(super) fn end_session(backend: &dyn Backend, session: &str) {
    if catch_unwind(AssertUnwindSafe(|| backend.session_ended(session))).is_err() {
        tracing::error!("session_ended of an MCP backend panicked");
    }
}

/// Maintains the sessions: forwards changes, and ends idle sessions.
async fn maintain(sessions: Weak<SessionTable>, changes: Receiver<Change>, idle: Duration, stop: CancellationToken) {
    let mut changes = Some(changes);
    let mut round = time::interval((idle / 2).clamp(Duration::from_millis(1), SWEEP_INTERVAL));
    round.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        let change = tokio::select! {
            () = stop.cancelled() => return,
            _ = round.tick() => None,
            change = next(&mut changes) => Some(change),
        };
        let Some(sessions) = sessions.upgrade() else { return };
        match change {
            None => sessions.end_idle(),
            Some(Ok(change)) => sessions.tell(&|_| vec![change.clone()]),
            Some(Err(RecvError::Lagged(_))) => sessions.tell(&Session::all_changes),
            Some(Err(RecvError::Closed)) => changes = None,
        }
    }
}

/// Waits for the next change, or forever if the channel is closed.
async fn next(changes: &mut Option<Receiver<Change>>) -> Result<Change, RecvError> {
    match changes {
        Some(changes) => changes.recv().await,
        None => std::future::pending().await,
    }
}
