//! The log of changes beside the file. The engine begins it anew whenever nobody reads in it; where readers relieve each other that
//! moment never comes, and the log would grow for as long as they do.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::schema::PATIENCE;

/// So long the log may become before changes wait for readers.
const LONG: u64 = 48 << 20;
/// After changes have waited in vain, so long they do not wait again: a backup of a large record must not hold them up all the time.
const PAUSE: Duration = Duration::from_secs(30);

/// How long one try to begin anew waits for readers, how long until the next one, and how long they go on. Other processes cannot write
/// meanwhile, and wait for longer than that.
const TRY: Duration = Duration::from_millis(100);
const BETWEEN: Duration = Duration::from_millis(10);
const TRIES: Duration = Duration::from_secs(5);

/// Looks after the log.
pub(super) struct WriteLog {
    file: Option<PathBuf>,
    not_before: Instant,
}

impl WriteLog {
    pub(super) fn of(connection: &Connection) -> Self {
        let file = connection.path().filter(|path| !path.is_empty()).map(|path| PathBuf::from(format!("{path}-wal")));
        Self { file, not_before: Instant::now() }
    }

    /// Begins the log anew where it is long, as soon as those who read in it have ended. Readers that come meanwhile need it no more.
    pub(super) fn keep_short(&mut self, connection: &Connection) {
        let long = || self.file.as_ref().and_then(|file| std::fs::metadata(file).ok()).is_some_and(|log| log.len() > LONG);
        if !long() || Instant::now() < self.not_before {
            return;
        }
        match begin_anew(connection) {
            Ok(true) => return,
            Ok(false) => tracing::warn!("the record's log is long, and somebody reads in it for a long time"),
            Err(error) => tracing::warn!(%error, "the record's log is long, and cannot be begun anew"),
        }
        self.not_before = Instant::now() + PAUSE;
    }
}

/// Begins the log anew, if readers let go of it in time. Says whether they did.
///
/// Many short tries, because a try waits for places in the log that it saw taken at its beginning, and readers that come and go can
/// share such a place for ever. Nothing is written meanwhile, so that the next try finds them further on.
fn begin_anew(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(TRY)?;
    let end = Instant::now() + TRIES;
    let anew = loop {
        let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        if !matches!(busy, Ok(true)) || Instant::now() > end {
            break busy.map(|busy| !busy);
        }
        std::thread::sleep(BETWEEN);
    };
    connection.busy_timeout(PATIENCE)?;
    anew
}
