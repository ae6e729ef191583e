//! The tables, and how they came to be.
//!
//! What is looked for has columns; everything else is one JSON text, which keeps the order of keys where `jsonb` does not.
//! Times are microseconds since 1970. Names begin with `helve_`, so that the record can live beside other tables.

use deadpool_postgres::Pool;
use helve_core::StoreError;

use super::session::{Session, Step, values};
use super::trouble::Trouble;
use crate::crash;

/// The version that the steps lead to.
const VERSION: i32 = 2;
const _: () = assert!(VERSION as usize == STEPS.len(), "each step has its version");

/// Whoever changes tables holds this lock. The number is "Helve" in letters.
const LOCK: &str = "SELECT pg_advisory_xact_lock(310939252325)";
const FIND: &str = "SELECT to_regclass(quote_ident(current_schema()) || '.helve_version') IS NOT NULL, current_schema() IS NOT NULL";
const READ: &str = "SELECT version FROM helve_version";
const WRITE: &str = "UPDATE helve_version SET version = $1";

/// Each step brings the tables from the version of its place to the next.
const STEPS: [&[&str]; 2] = [FIRST, WHO_WAITS];

const FIRST: &[&str] = &[
    "CREATE TABLE helve_version (version integer NOT NULL)",
    "INSERT INTO helve_version VALUES (0)",
    // A queue leaves many dead rows behind; they are swept early and without pauses.
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
    // The last transaction of each of the server's processes, for whoever lost the answer to a commit.
    "CREATE TABLE helve_marks (backend integer PRIMARY KEY, mark text NOT NULL, made timestamptz NOT NULL) WITH (fillfactor = 50)",
    r#"CREATE TABLE helve_bodies (digest text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL)"#,
];

/// Which process waits for an answer, and to which conversation a request belongs. Bodies are not read by the server, which does not
/// understand all texts that JSON can hold.
const WHO_WAITS: &[&str] = &[
    r#"ALTER TABLE helve_approvals ADD COLUMN asker text COLLATE "C", ADD COLUMN conversation text COLLATE "C""#,
    r#"UPDATE helve_approvals SET conversation = substring(body from '"caller":\{[^}]*"conversation":"(conv_[0-9A-Z]{26})"')
        WHERE state = 'pending'"#,
    "CREATE INDEX helve_approvals_asked ON helve_approvals (asker) WHERE state = 'pending' AND asker IS NOT NULL",
];

/// Brings the tables up to date, in one transaction.
pub(super) async fn migrate(pool: &Pool) -> Result<(), StoreError> {
    let session = Session::lend(pool).await.map_err(Trouble::told)?;
    let migrated = inside(&session).await;
    if migrated.is_err() {
        // The connection is closed in any case; this frees the tables without waiting for that.
        let _ = session.pipeline(vec![Step("ROLLBACK", values![])]).await;
    }
    migrated.map_err(Trouble::told)
}

async fn inside(session: &Session) -> Result<(), Trouble> {
    let found = session.pipeline(vec![Step("BEGIN", values![]), Step(LOCK, values![]), Step(FIND, values![])]).await?;
    let found = found.last().and_then(|rows| rows.first());
    let (known, place) = found.map_or(Ok((false, false)), |row| row.try_get(0).and_then(|known| Ok((known, row.try_get(1)?))))?;
    if !place {
        let said = "there is no schema for the tables: the search_path names none that exists";
        return Err(StoreError::Unavailable(said.to_owned()).into());
    }
    let mut version: i32 = 0;
    if known {
        let rows = session.pipeline(vec![Step(READ, values![])]).await?.pop().unwrap_or_default();
        let Some(row) = rows.first() else { return Err(StoreError::Damaged("its version is missing".to_owned()).into()) };
        version = row.try_get(0)?;
    }
    let done = usize::try_from(version).map_err(|_| StoreError::Damaged(format!("its version is {version}")))?;
    if version > VERSION {
        return Err(StoreError::Version(format!("a newer Helve wrote it (version {version}, known is {VERSION})")).into());
    }
    for step in STEPS.iter().skip(done) {
        // One after the other: a statement is understood only when the tables that it names are there.
        for sql in *step {
            session.pipeline(vec![Step(sql, values![])]).await?;
        }
    }
    if version < VERSION {
        session.pipeline(vec![Step(WRITE, values![VERSION])]).await?;
    }
    crash::reach("open", crash::BEFORE);
    session.pipeline(vec![Step("COMMIT", values![])]).await?;
    crash::reach("open", crash::AFTER);
    Ok(())
}
