//! Opens SQLite connections, and defines the tables and their migrations.

use std::path::Path;
use std::time::{Duration, Instant};

use helve_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::rows::engine;
use super::{Durability, paths, shape};
use crate::crash;

/// The minimum version of SQLite. Older versions could lose committed transactions after a crash of the machine.
const MIN_SQLITE: i32 = 3_051_003;
/// The application id in the header of Helve's files.
const APPLICATION: i32 = 0x4865_6c76;
/// Timeout for a lock that another process holds.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// The schema version after all migrations.
pub(super) const VERSION: u32 = 3;
const _: () = assert!(VERSION as usize == MIGRATIONS.len(), "each migration has its version");

/// The migrations. The migration at index `n` leads from schema version `n` to `n + 1`.
pub(super) const MIGRATIONS: [&str; 3] = [FIRST, TASKS_IN_COLUMNS, WHO_WAITS];

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

/// Moves the state of tasks into columns, so that a change of state need not write the body again.
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

/// Adds the process that waits for a decision, and the processes that claim tasks.
const WHO_WAITS: &str = "
    ALTER TABLE approvals ADD COLUMN asker TEXT;
    CREATE INDEX approvals_over ON approvals (id) WHERE state = 'pending' AND (expires IS NOT NULL OR asker IS NOT NULL);
    ALTER TABLE holders ADD COLUMN claims INTEGER NOT NULL DEFAULT 0;
";

/// Opens a connection for writing, and migrates the tables.
pub(super) fn open(file: &Path, durability: Durability) -> Result<Connection, StoreError> {
    if rusqlite::version_number() < MIN_SQLITE {
        return Err(StoreError::Version(format!("SQLite {} is too old; version 3.51.3 or later is required", rusqlite::version())));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(file, flags).map_err(|error| explain(file, error))?;
    begin(&connection).map_err(|error| explain(file, error))??;
    // Write only after it is certain that the file is a Helve store.
    paths::tighten(file)?;
    prepare(&mut connection, durability).map_err(|error| explain(file, error))?.map_err(|error| in_file(file, error))?;
    Ok(connection)
}

/// Opens a connection for reading.
pub(super) fn open_reader(file: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let open = || {
        let connection = Connection::open_with_flags(file, flags)?;
        shape::harden(&connection)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(connection)
    };
    open().map_err(|error| explain(file, error))
}

/// Configures a connection so that it runs no code from the file. Rejects a database of another program.
fn begin(connection: &Connection) -> rusqlite::Result<Result<(), StoreError>> {
    shape::harden(connection)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Read in one transaction, because another process may be creating the tables.
    let moment = connection.unchecked_transaction()?;
    let owner: i32 = moment.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: u32 = moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    moment.finish()?;
    Ok(if owner == APPLICATION || tables == 0 {
        Ok(())
    } else {
        Err(StoreError::Version("the file is a database of another program; use another file for the store".to_owned()))
    })
}

fn prepare(connection: &mut Connection, durability: Durability) -> rusqlite::Result<Result<(), StoreError>> {
    use_wal(connection)?;
    connection.pragma_update(None, "synchronous", durability.name())?;
    connection.pragma_update(None, "foreign_keys", false)?;
    // Let the write-ahead log shrink again after a burst of writes.
    connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
    // Plan each statement only once, whatever its parameters. Otherwise SQLite plans each claim again.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version > VERSION {
        return Ok(Err(StoreError::Version(format!(
            "it was written by a newer Helve (schema {version}, supported: {VERSION}); update Helve"
        ))));
    }
    if let Err(error) = shape::check(&transaction, version as usize)? {
        return Ok(Err(error));
    }
    for step in MIGRATIONS.iter().skip(version as usize) {
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

/// Turns on write-ahead logging. If two processes do this at once for a new file, SQLite returns an error to one of them instead of
/// waiting, so this function retries.
fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update(None, "journal_mode", "wal") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

/// Adds the path of the file to an error.
fn in_file(file: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged(reason) => StoreError::Damaged(format!("{}: {reason}", file.display())),
        other => other,
    }
}

fn explain(file: &Path, error: rusqlite::Error) -> StoreError {
    match engine(error) {
        StoreError::Unavailable(reason) => StoreError::Unavailable(format!("{}: {reason}", file.display())),
        error => in_file(file, error),
    }
}
