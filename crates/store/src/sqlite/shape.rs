//! Checks that a file has exactly the tables that Helve creates. Triggers or defaults that another user added could insert rows, such as
//! tasks that no process has accepted.

use std::collections::BTreeMap;

use helve_core::{Digest, StoreError};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::schema::MIGRATIONS;

/// The schema of a database: the SQL of tables, indexes, triggers and views, by kind and name.
type Shape = BTreeMap<(String, String), String>;

/// Configures a connection so that it runs no code from the file.
pub(super) fn harden(connection: &Connection) -> rusqlite::Result<()> {
    let switches = [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
    ];
    for (switch, on) in switches {
        connection.set_db_config(switch, on)?;
    }
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Digests of the schemas that Helve creates, with their versions. If another version of SQLite stores the SQL differently, add its
/// digests and keep these, so that existing files can still be opened.
const KNOWN: [(usize, &str); 3] = [
    (1, "d2fac9e7e03682c513bdf4423c50a503c5a6b80e550c85d308817920d934b85c"),
    (2, "1d7f94fb0237028e9fb0e70386e34231ea9afb41fdc4d2dde2bdf11295b27789"),
    (3, "1912e4226a94a3e47a97ff1d3742905efd34c2c024d37cc72936098c4e6728ad"),
];

/// Returns an error if the schema of the file is not exactly the one that Helve creates for this version.
pub(super) fn check(connection: &Connection, version: usize) -> rusqlite::Result<Result<(), StoreError>> {
    let found = read(connection)?;
    if is_known(version, &found) {
        return Ok(Ok(()));
    }
    // Create the expected tables only now, because this is slower than comparing digests. The comparison shows what is wrong.
    let expected = schema_of(version)?;
    let changed = found.iter().find(|(name, sql)| expected.get(*name) != Some(*sql)).map(|(name, _)| name);
    let missing = expected.keys().find(|name| !found.contains_key(*name));
    let what = match (changed, missing) {
        (None, None) => return Ok(Ok(())),
        (Some(name @ (kind, of)), _) if expected.contains_key(name) => format!("the {kind} `{of}` is not the one that Helve creates"),
        (Some((kind, of)), _) => format!("there is a {kind} `{of}` that Helve does not create"),
        (None, Some((kind, of))) => format!("the {kind} `{of}` is missing"),
    };
    Ok(Err(StoreError::Damaged(format!("{}; another program has created or changed the file", helve_core::printable::escape_line(&what)))))
}

fn is_known(version: usize, shape: &Shape) -> bool {
    let digest = digest(shape).to_string();
    KNOWN.iter().any(|known| *known == (version, &digest))
}

fn digest(shape: &Shape) -> Digest {
    Digest::of(shape.iter().flat_map(|((kind, name), sql)| [kind.as_bytes(), name.as_bytes(), sql.as_bytes()]))
}

/// Returns the schema after the migrations up to `version`.
fn schema_of(version: usize) -> rusqlite::Result<Shape> {
    let scratch = Connection::open_in_memory_with_flags(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    for step in MIGRATIONS.iter().take(version) {
        scratch.execute_batch(step)?;
    }
    read(&scratch)
}

fn read(connection: &Connection) -> rusqlite::Result<Shape> {
    let mut statement = connection.prepare("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema")?;
    let rows = statement.query_map([], |row| {
        let (kind, name, table, sql): (String, String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(((kind, name), format!("{table}: {}", spaced(&sql))))
    })?;
    rows.collect()
}

/// Normalises the white space in SQL. This loses no information, because no string literal in Helve's schema contains a space.
fn spaced(sql: &str) -> String {
    sql.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_known() {
        let unknown = |version: &usize| !is_known(*version, &schema_of(*version).expect("tables"));
        let unknown: Vec<_> =
            (1..=MIGRATIONS.len()).filter(unknown).map(|version| (version, digest(&schema_of(version).expect("tables")))).collect();
        assert!(unknown.is_empty(), "add these to KNOWN, and leave what is there: {unknown:?}");
    }
}
