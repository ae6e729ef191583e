//! The tables and their migrations.
//!
//! Values that queries search for have columns. Everything else is one JSON text, which keeps the order of keys, unlike `jsonb`. Times are
//! microseconds since 1970. Names begin with `helve_`, so that the store can share a schema with other tables.

use deadpool_postgres::Pool;
use helve_core::StoreError;

use super::error::TransactionError;
use super::session::{Query, Session, values};
use crate::crash;

/// The schema version after all migrations.
const VERSION: i32 = 2;
const _: () = assert!(VERSION as usize == MIGRATIONS.len(), "each migration has its version");

/// Locks the database for migrations. The number is the ASCII code of "Helve".
const LOCK: &str = "SELECT pg_advisory_xact_lock(310939252325)";
const FIND: &str = "SELECT to_regclass(quote_ident(current_schema()) || '.helve_version') IS NOT NULL, current_schema() IS NOT NULL";
const READ: &str = "SELECT version FROM helve_version";
const WRITE: &str = "UPDATE helve_version SET version = $1";

/// The migrations. The migration at index `n` leads from schema version `n` to `n + 1`.
const MIGRATIONS: [&[&str]; 2] = [FIRST, WHO_WAITS];

const FIRST: &[&str] = &[
    "CREATE TABLE helve_version (version integer NOT NULL)",
    "INSERT INTO helve_version VALUES (0)",
    // A queue leaves many dead rows: vacuum early and without pauses.
    r#"CREATE TABLE helve_tasks (id text COLLATE "C" PRIMARY KEY, state text COLLATE "C" NOT NULL, rank bigint NOT NULL,
        due bigint NOT NULL, definition text COLLATE "C" NOT NULL, conversation text COLLATE "C", run text COLLATE "C",
        holder text COLLATE "C", claim text COLLATE "C", epoch bigint NOT NULL, attempts bigint NOT NULL, cancelling boolean NOT NULL,
        heard boolean NOT NULL, updated bigint NOT NULL, body text NOT NULL)
        WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)"#,
    "CREATE INDEX helve_tasks_queue ON helve_tasks (rank, id) WHERE state = 'queued'",
    "CREATE INDEX helve_tasks_running ON helve_tasks (holder) WHERE state = 'running'",
    "CREATE INDEX helve_tasks_unheard ON helve_tasks (conversation, updated) WHERE NOT heard AND conversation IS NOT NULL",
    r#"CREATE TABLE helve_approvals (id text COLLATE "C" PRIMARY KEY, run text COLLATE "C", state text COLLATE "C" NOT NULL,
        expires bigint, answered bigint, body text NOT NULL)"#,
    "CREATE INDEX helve_approvals_open ON helve_approvals (run) WHERE state = 'pending'",
    "CREATE INDEX helve_approvals_expiring ON helve_approvals (expires) WHERE state = 'pending' AND expires IS NOT NULL",
    "CREATE INDEX helve_approvals_run ON helve_approvals (run, id)",
    r#"CREATE TABLE helve_runs (id text COLLATE "C" PRIMARY KEY, state text COLLATE "C" NOT NULL,
        conversation text COLLATE "C" NOT NULL, holder text COLLATE "C", cancelling boolean NOT NULL, updated bigint NOT NULL,
        body text NOT NULL)"#,
    "CREATE INDEX helve_runs_state ON helve_runs (state, id)",
    r#"CREATE TABLE helve_snapshots (run text COLLATE "C" PRIMARY KEY, body text NOT NULL)"#,
    r#"CREATE TABLE helve_events (run text COLLATE "C" NOT NULL, seq bigint NOT NULL, body text NOT NULL, PRIMARY KEY (run, seq))"#,
    r#"CREATE TABLE helve_conversations (id text COLLATE "C" PRIMARY KEY, updated bigint NOT NULL, body text NOT NULL)"#,
    "CREATE INDEX helve_conversations_updated ON helve_conversations (updated, id)",
    r#"CREATE TABLE helve_messages (conversation text COLLATE "C" NOT NULL, place bigint NOT NULL, body text NOT NULL,
        PRIMARY KEY (conversation, place))"#,
    r#"CREATE TABLE helve_holders (id text COLLATE "C" PRIMARY KEY, until timestamptz NOT NULL)"#,
    // The mark of the last transaction of each server backend, for a client that lost the response to a commit.
    "CREATE TABLE helve_marks (backend integer PRIMARY KEY, mark text NOT NULL, made timestamptz NOT NULL) WITH (fillfactor = 50)",
    r#"CREATE TABLE helve_bodies (digest text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL)"#,
];

/// Adds the process that waits for a decision, and the conversation of an approval. The migration does not parse bodies as JSON,
/// because PostgreSQL does not accept every JSON text.
const WHO_WAITS: &[&str] = &[
    r#"ALTER TABLE helve_approvals ADD COLUMN asker text COLLATE "C", ADD COLUMN conversation text COLLATE "C""#,
    r#"UPDATE helve_approvals SET conversation = substring(body from '"caller":\{[^}]*"conversation":"(conv_[0-9A-Z]{26})"')
        WHERE state = 'pending'"#,
    "CREATE INDEX helve_approvals_asked ON helve_approvals (asker) WHERE state = 'pending' AND asker IS NOT NULL",
];

/// Migrates the tables in one transaction.
pub(super) async fn migrate(pool: &Pool) -> Result<(), StoreError> {
    let session = Session::take(pool).await?;
    let migrated = inside(&session).await;
    if migrated.is_err() {
        // Release the lock at once. Dropping the session closes the connection in any case.
        let _ = session.pipeline(vec![Query("ROLLBACK", values![])]).await;
    }
    Ok(migrated?)
}

async fn inside(session: &Session) -> Result<(), TransactionError> {
    let found = session.pipeline(vec![Query("BEGIN", values![]), Query(LOCK, values![]), Query(FIND, values![])]).await?;
    let found = found.last().and_then(|rows| rows.first());
    let (known, has_schema) = found.map_or(Ok((false, false)), |row| row.try_get(0).and_then(|known| Ok((known, row.try_get(1)?))))?;
    if !has_schema {
        let reason = "no schema for the tables: create a schema that is in the `search_path`, or change the `search_path`";
        return Err(StoreError::Unavailable(reason.to_owned()).into());
    }
    let mut version: i32 = 0;
    if known {
        let rows = session.pipeline(vec![Query(READ, values![])]).await?.pop().unwrap_or_default();
        let Some(row) = rows.first() else { return Err(StoreError::Damaged("the table `helve_version` is empty".to_owned()).into()) };
        version = row.try_get(0)?;
    }
    let done = usize::try_from(version).map_err(|_| StoreError::Damaged(format!("invalid schema version {version}")))?;
    if version > VERSION {
        return Err(
            StoreError::Version(format!("it was written by a newer Helve (schema {version}, supported: {VERSION}); update Helve")).into()
        );
    }
    for migration in MIGRATIONS.iter().skip(done) {
        // Run the statements one after the other: a statement can be prepared only after its tables exist.
        for sql in *migration {
            session.pipeline(vec![Query(sql, values![])]).await?;
        }
    }
    if version < VERSION {
        session.pipeline(vec![Query(WRITE, values![VERSION])]).await?;
    }
    crash::reach("open", crash::BEFORE);
    session.pipeline(vec![Query("COMMIT", values![])]).await?;
    crash::reach("open", crash::AFTER);
    Ok(())
}
