//! The write-ahead log. SQLite restarts it whenever there is no reader in it; if readers take turns, that moment never comes, and the log
//! would grow without limit.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::schema::BUSY_TIMEOUT;

/// The log may grow to this many bytes before writes wait for readers.
const MAX_LENGTH: u64 = 48 << 20;
/// Delay after a failed attempt: a backup of a large store must not hold up writes all the time.
const PAUSE: Duration = Duration::from_secs(30);

/// The busy timeout of one attempt to restart the log, the delay between attempts, and the time for all of them. Other processes
/// cannot write meanwhile; their busy timeout is longer.
const ATTEMPT: Duration = Duration::from_millis(100);
const BETWEEN: Duration = Duration::from_millis(10);
const ATTEMPTS: Duration = Duration::from_secs(5);

/// Keeps the write-ahead log short.
pub(super) struct WriteAheadLog {
    file: Option<PathBuf>,
    not_before: Instant,
}

impl WriteAheadLog {
    pub(super) fn of(connection: &Connection) -> Self {
        let file = connection.path().filter(|path| !path.is_empty()).map(|path| PathBuf::from(format!("{path}-wal")));
        Self { file, not_before: Instant::now() }
    }

    /// Restarts the log if it is long, as soon as its readers have ended. Later readers do not need it.
    pub(super) fn keep_short(&mut self, connection: &Connection) {
        let is_long = || self.file.as_ref().and_then(|file| std::fs::metadata(file).ok()).is_some_and(|log| log.len() > MAX_LENGTH);
        if !is_long() || Instant::now() < self.not_before {
            return;
        }
        match restart(connection) {
            Ok(true) => return,
            Ok(false) => tracing::warn!("the store's write-ahead log is long, and a long read keeps it from being truncated"),
            Err(error) => tracing::warn!(%error, "the store's write-ahead log is long, and cannot be truncated"),
        }
        self.not_before = Instant::now() + PAUSE;
    }
}

/// Restarts the log if its readers end in time. Returns whether they did.
///
/// It takes many short attempts. One attempt waits for the positions in the log that were in use when it began, and readers that take
/// turns can share such a position forever. Nothing is written meanwhile, so the next attempt finds them further on.
fn restart(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(ATTEMPT)?;
    let end = Instant::now() + ATTEMPTS;
    let restarted = loop {
        let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        if !matches!(busy, Ok(true)) || Instant::now() > end {
            break busy.map(|busy| !busy);
        }
        std::thread::sleep(BETWEEN);
    };
    connection.busy_timeout(BUSY_TIMEOUT)?;
    restarted
}
