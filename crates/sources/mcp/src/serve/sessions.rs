//! All sessions of the older era over HTTP: how many there are, and when one ends.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time;
use tokio_util::sync::CancellationToken;

use helve_mcp_wire::Era;

use super::session::{Session, declares, notice};
use super::{Backend, Change};

/// How often at least is looked for sessions that are over.
const ROUND: Duration = Duration::from_mins(1);

/// All sessions.
pub(super) struct Sessions {
    backend: Arc<dyn Backend>,
    max: usize,
    idle: Duration,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<Arc<str>, Arc<Session>>,
    /// Whether somebody looks after them.
    tended: bool,
    /// No session is opened any more.
    closed: bool,
}

impl Sessions {
    pub fn new(backend: Arc<dyn Backend>, max: usize, idle: Duration) -> Arc<Self> {
        Arc::new(Self { backend, max, idle, table: Mutex::default() })
    }

    /// Keeps a session. One that is idle makes room for it; where none is, there is no room.
    pub fn open(self: &Arc<Self>, session: Arc<Session>, stop: &CancellationToken) -> bool {
        let mut table = self.table();
        if table.closed {
            return false;
        }
        let mut ended = None;
        if table.sessions.len() >= self.max {
            // Whoever still reads a stream is rather there than whoever does not.
            let idle = table.sessions.values().filter_map(|session| Some((session.idle_since()?, session.id.clone())));
            let Some((_, oldest)) = idle.min_by_key(|(since, _)| *since) else { return false };
            ended = table.sessions.remove(&oldest);
        }
        table.sessions.insert(session.id.clone(), session);
        let tended = std::mem::replace(&mut table.tended, true);
        drop(table);
        if !tended {
            tokio::spawn(tend(Arc::downgrade(self), self.backend.changes(), self.idle, stop.clone()));
        }
        if let Some(session) = ended {
            self.farewell(&session);
        }
        true
    }

    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.table().sessions.get(id).cloned()?;
        session.touch();
        Some(session)
    }

    /// Ends a session; whether there was one.
    pub fn end(&self, id: &str) -> bool {
        let ended = self.table().sessions.remove(id);
        ended.inspect(|session| self.farewell(session)).is_some()
    }

    /// Ends the streams of all sessions, but not what runs in them.
    pub fn hush(&self) {
        self.all().iter().for_each(|session| session.hush());
    }

    /// Ends all sessions, for good.
    pub fn end_all(&self) {
        let ended = {
            let mut table = self.table();
            table.closed = true;
            std::mem::take(&mut table.sessions)
        };
        for session in ended.values() {
            self.farewell(session);
        }
    }

    /// Tells all sessions that want to know of these changes.
    fn tell(&self, changes: &dyn Fn(&Session) -> Vec<Change>) {
        let capabilities = self.backend.capabilities(Era::Legacy);
        for session in self.all() {
            let changes = changes(&session).into_iter().filter(|change| session.cares(change) && declares(&capabilities, change));
            changes.for_each(|change| session.tell(notice(&change)));
        }
    }

    fn sweep(&self) {
        for session in self.all() {
            match session.idle_since() {
                Some((false, since)) if since.elapsed() >= self.idle => {
                    self.end(&session.id);
                }
                Some((false, _)) => {}
                // Whoever reads a stream, or waits for an answer, is there.
                Some((true, _)) | None => session.touch(),
            }
        }
    }

    fn farewell(&self, session: &Session) {
        session.finish();
        farewell(&*self.backend, &session.id);
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.table().sessions.values().cloned().collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

/// Tells the backend that a session is over.
pub(super) fn farewell(backend: &dyn Backend, session: &str) {
    if catch_unwind(AssertUnwindSafe(|| backend.session_ended(session))).is_err() {
        tracing::error!("the end of an MCP session could not be told: it panicked");
    }
}

/// Looks after the sessions as long as they are there: changes are told, and those in which nothing happens are ended.
async fn tend(sessions: Weak<Sessions>, changes: Receiver<Change>, idle: Duration, stop: CancellationToken) {
    let mut changes = Some(changes);
    let mut round = time::interval((idle / 2).clamp(Duration::from_millis(1), ROUND));
    round.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        let change = tokio::select! {
            () = stop.cancelled() => return,
            _ = round.tick() => None,
            change = next(&mut changes) => Some(change),
        };
        let Some(sessions) = sessions.upgrade() else { return };
        match change {
            None => sessions.sweep(),
            Some(Ok(change)) => sessions.tell(&|_| vec![change.clone()]),
            Some(Err(RecvError::Lagged(_))) => sessions.tell(&Session::all_changes),
            Some(Err(RecvError::Closed)) => changes = None,
        }
    }
}

/// The next change; it never comes where nothing changes any more.
async fn next(changes: &mut Option<Receiver<Change>>) -> Result<Change, RecvError> {
    match changes {
        Some(changes) => changes.recv().await,
        None => std::future::pending().await,
    }
}
