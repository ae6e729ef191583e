//! Keeps the write-ahead log short. SQLite restarts the log only while no reader uses it. If readers overlap, this never happens, and the
//! log would grow without limit.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::schema::BUSY_TIMEOUT;

/// Size of the log above which the writer waits for readers and restarts the log, in bytes.
const MAX_LENGTH: u64 = 48 << 20;
/// Delay after a failed restart, so that a long read, such as a backup, does not delay every write.
const PAUSE: Duration = Duration::from_secs(30);

/// Busy timeout of one attempt to restart the log.
const ATTEMPT: Duration = Duration::from_millis(100);
/// Delay between attempts to restart the log.
const BETWEEN: Duration = Duration::from_millis(10);
/// Total time for attempts to restart the log. Shorter than [`BUSY_TIMEOUT`], because other processes cannot write during an attempt.
const ATTEMPTS: Duration = Duration::from_secs(5);

/// The write-ahead log of a connection, which is restarted when it is long.
pub(super) struct WriteAheadLog {
    file: Option<PathBuf>,
    not_before: Instant,
}

impl WriteAheadLog {
    pub(super) fn of(connection: &Connection) -> Self {
        let file = connection.path().filter(|path| !path.is_empty()).map(|path| PathBuf::from(format!("{path}-wal")));
        Self { file, not_before: Instant::now() }
    }

    /// Restarts the log if it is long, unless an attempt failed recently.
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

/// Restarts the log. Returns `false` if readers still use the log after [`ATTEMPTS`].
///
/// This makes many short attempts. One attempt waits for the positions in the log that were in use when it began, and overlapping
/// readers can share such a position forever. New readers start at the end of the log, so a later attempt no longer finds them there.
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
