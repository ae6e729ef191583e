//! The tables, and how they came to be.

use std::path::Path;
use std::time::{Duration, Instant};

use helve_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::{Durability, place, shape};
use crate::crash;

/// Older ones could lose committed transactions after a crash of the machine.
const OLDEST: i32 = 3_051_003;
/// Marks the file as one of Helve's.
const APPLICATION: i32 = 0x4865_6c76;
/// How long other processes may write.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The version that the steps lead to.
pub(super) const VERSION: u32 = 3;
const _: () = assert!(VERSION as usize == STEPS.len(), "each step has its version");

/// Each step brings the tables from the version of its place to the next.
pub(super) const STEPS: [&str; 3] = [FIRST, TASKS_IN_COLUMNS, WHO_WAITS];

const FIRST: &str = "
    CREATE TABLE tasks (id TEXT PRIMARY KEY, state TEXT NOT NULL, rank INTEGER NOT NULL, due INTEGER NOT NULL, definition TEXT NOT NULL,
        conversation TEXT, heard INTEGER NOT NULL, updated INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX tasks_queue ON tasks (rank) WHERE state = 'queued';
    CREATE INDEX tasks_running ON tasks (id) WHERE state = 'running';
    CREATE INDEX tasks_unheard ON tasks (conversation) WHERE heard = 0 AND conversation IS NOT NULL AND state <> 'queued' AND state <> 'running';
    CREATE TABLE approvals (id TEXT PRIMARY KEY, run TEXT, state TEXT NOT NULL, expires INTEGER, answered INTEGER, body TEXT NOT NULL)
        WITHOUT ROWID;
    CREATE INDEX approvals_open ON approvals (run) WHERE state = 'pending';
    CREATE INDEX approvals_run ON approvals (run);
    CREATE TABLE runs (id TEXT PRIMARY KEY, state TEXT NOT NULL, updated INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX runs_state ON runs (state, id);
    CREATE TABLE snapshots (run TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE events (run TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run, seq)) WITHOUT ROWID;
    CREATE TABLE conversations (id TEXT PRIMARY KEY, updated INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX conversations_updated ON conversations (updated);
    CREATE TABLE messages (conversation TEXT NOT NULL, place INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (conversation, place))
        WITHOUT ROWID;
    CREATE TABLE holders (id TEXT PRIMARY KEY, boot TEXT NOT NULL, until INTEGER NOT NULL, namespace TEXT, process INTEGER, started TEXT)
        WITHOUT ROWID;
    CREATE TABLE bodies (digest TEXT PRIMARY KEY, kept INTEGER NOT NULL, bytes BLOB NOT NULL);
";

/// What becomes of a task is in columns, so that its text need not be written again.
const TASKS_IN_COLUMNS: &str = "
    CREATE TABLE tasks_in_columns (id TEXT PRIMARY KEY, state TEXT NOT NULL, rank INTEGER NOT NULL, due INTEGER NOT NULL,
        definition TEXT NOT NULL, conversation TEXT, holder TEXT, epoch INTEGER NOT NULL, attempts INTEGER NOT NULL, cancelling INTEGER NOT NULL,
        heard INTEGER NOT NULL, late INTEGER NOT NULL, updated INTEGER NOT NULL, progress TEXT, outcome TEXT, body TEXT NOT NULL) WITHOUT ROWID;
    INSERT INTO tasks_in_columns SELECT id, state, rank, due * 1000, definition, conversation, whole ->> 'holder',
        coalesce(whole ->> 'epoch', 0), coalesce(whole ->> 'attempts', 0), coalesce(whole ->> 'cancelling', 0), heard, coalesce(whole ->> 'late', 0), updated * 1000,
        nullif(whole -> 'progress', 'null'), nullif(whole -> 'outcome', 'null'), body
        FROM (SELECT *, CASE WHEN body >= '@' AND body < 'A' THEN (SELECT CAST(bytes AS TEXT) FROM bodies WHERE digest = substr(tasks.body, 2))
            ELSE body END AS whole FROM tasks);
    ALTER TABLE runs ADD COLUMN conversation TEXT;
    UPDATE runs SET conversation = CASE WHEN body >= '@' AND body < 'A'
        THEN (SELECT CAST(bytes AS TEXT) FROM bodies WHERE digest = substr(runs.body, 2)) ELSE body END ->> 'conversation_id';
    DROP TABLE tasks;
    ALTER TABLE tasks_in_columns RENAME TO tasks;
    CREATE INDEX tasks_queue ON tasks (rank) WHERE state = 'queued';
    CREATE INDEX tasks_running ON tasks (id) WHERE state = 'running';
    CREATE INDEX tasks_unheard ON tasks (conversation) WHERE heard = 0 AND conversation IS NOT NULL AND state <> 'queued' AND state <> 'running';
";

/// Which process waits for an answer, and which ones gave tasks out.
const WHO_WAITS: &str = "
    ALTER TABLE approvals ADD COLUMN asker TEXT;
    CREATE INDEX approvals_over ON approvals (id) WHERE state = 'pending' AND (expires IS NOT NULL OR asker IS NOT NULL);
    ALTER TABLE holders ADD COLUMN claims INTEGER NOT NULL DEFAULT 0;
";

/// A connection that may write; the tables are brought up to date.
pub(super) fn open(file: &Path, durability: Durability) -> Result<Connection, StoreError> {
    if rusqlite::version_number() < OLDEST {
        return Err(StoreError::Version(format!("SQLite {} is too old; 3.51.3 is needed", rusqlite::version())));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(file, flags).map_err(|error| explain(file, &error))?;
    begin(&connection).map_err(|error| explain(file, &error))??;
    // Only now is it known to be one of Helve's, and nothing is written before.
    place::tighten(file)?;
    prepare(&mut connection, durability).map_err(|error| explain(file, &error))?.map_err(|error| in_file(file, error))?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn open_reader(file: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let open = || {
        let connection = Connection::open_with_flags(file, flags)?;
        shape::harden(&connection)?;
        connection.busy_timeout(PATIENCE)?;
        Ok(connection)
    };
    open().map_err(|error| explain(file, &error))
}

/// Lets a connection run nothing that the file brings along, and refuses a database of another program.
fn begin(connection: &Connection) -> rusqlite::Result<Result<(), StoreError>> {
    shape::harden(connection)?;
    connection.busy_timeout(PATIENCE)?;
    // At one moment: another process may be making the tables.
    let moment = connection.unchecked_transaction()?;
    let owner: i32 = moment.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: u32 = moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    moment.finish()?;
    Ok(if owner == APPLICATION || tables == 0 {
        Ok(())
    } else {
        Err(StoreError::Version("the file is a database of another program".to_owned()))
    })
}

fn prepare(connection: &mut Connection, durability: Durability) -> rusqlite::Result<Result<(), StoreError>> {
    use_log(connection)?;
    connection.pragma_update(None, "synchronous", durability.name())?;
    connection.pragma_update(None, "foreign_keys", false)?;
    // What the log took up in a rush is given back.
    connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
    // A plan is made once, whatever a statement is given; otherwise claims are planned anew each time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version > VERSION {
        return Ok(Err(StoreError::Version(format!("a newer Helve wrote it (version {version}, known is {VERSION})"))));
    }
    if let Err(error) = shape::check(&transaction, version as usize)? {
        return Ok(Err(error));
    }
    for step in STEPS.iter().skip(version as usize) {
        transaction.execute_batch(step)?;
    }
    if version < VERSION {
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
    }
    crash::reach("open", crash::BEFORE);
    transaction.commit()?;
    crash::reach("open", crash::AFTER);
    Ok(Ok(()))
}

/// Lets changes go to a log. Where two processes open a new file at once, only one of them can change that, and SQLite does not let the
/// other one wait.
fn use_log(connection: &Connection) -> rusqlite::Result<()> {
    let patience_ends = Instant::now() + PATIENCE;
    loop {
        match connection.pragma_update(None, "journal_mode", "wal") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < patience_ends => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

/// Names the file of which something is wrong.
fn in_file(file: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged(said) => StoreError::Damaged(format!("{}: {said}", file.display())),
        other => other,
    }
}

fn explain(file: &Path, error: &rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let said = format!("{}: {error}", file.display());
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => StoreError::Damaged(said),
        _ => StoreError::Unavailable(said),
    }
}
