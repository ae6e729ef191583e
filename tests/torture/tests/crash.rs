//! The process dies before and after every commit of the record: nothing of the step is there, or all of it.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use helve_torture::crash::{STEPS, prepare};
use helve_torture::{Log, Paths};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// All rows of all tables, in a form that can be compared.
type Rows = BTreeMap<String, Vec<Vec<(String, Value)>>>;

const SIGABRT: i32 = 6;

/// Starts a child, and lets it die where it is told to.
fn run(part: &str, folder: &Path, step: Option<&str>, crash: Option<&str>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_torture"));
    let output =
        command.arg(part).arg(folder).arg(folder.join("record.db")).args(step).envs(crash.iter().map(|at| ("HELVE_CRASH_AT", at))).output();
    let output = output.expect("a child");
    match crash {
        Some(_) => assert_eq!(output.status.signal(), Some(SIGABRT), "{step:?}: {output:?}"),
        None => assert!(output.status.success(), "{step:?}: {output:?}"),
    }
}

/// Does a step in a copy of the record, and dies where it is told to. Gives what is in the copy then.
fn after(start: &Path, step: &str, crash: Option<&str>) -> Rows {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["record.db", "names"] {
        std::fs::copy(start.join(file), folder.path().join(file)).expect("a copy");
    }
    run("crash", folder.path(), Some(step), crash);
    rows(&folder.path().join("record.db"))
}

fn rows(file: &Path) -> Rows {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("a database");
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a look");
    assert_eq!(sound, "ok");
    let mut names = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").expect("tables");
    let tables: Vec<String> = names.query_map([], |row| row.get(0)).expect("tables").map(|name| name.expect("a name")).collect();
    let read = |table: &String| {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).expect("a table");
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let row = |row: &rusqlite::Row<'_>| Ok(columns.iter().enumerate().map(|(at, name)| (name.clone(), cell(row.get(at)))).collect());
        statement.query_map([], row).expect("rows").map(|row| row.expect("a row")).collect()
    };
    tables.iter().map(|table| (table.clone(), read(table))).collect()
}

fn cell(cell: rusqlite::Result<Cell>) -> Value {
    match cell.expect("a cell") {
        Cell::Null => Value::Null,
        Cell::Integer(number) => number.into(),
        Cell::Real(number) => number.into(),
        Cell::Text(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        // Large rows lie here as text.
        Cell::Blob(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|_| format!("{bytes:?}").into()),
    }
}

/// The same, without what is another one each time: the time, names that the step makes, the process.
fn without_chance(rows: Rows, known: &str) -> Rows {
    let chance = ["rank", "due", "updated", "expires", "answered", "until", "process", "started"];
    let cell = |(name, value): (String, Value)| {
        let value = if chance.contains(&&*name) { Value::Null } else { plain(value, known) };
        (name, value)
    };
    let row = |row: Vec<(String, Value)>| row.into_iter().map(cell).collect();
    rows.into_iter().map(|(table, rows)| (table, rows.into_iter().map(row).collect())).collect()
}

fn plain(value: Value, known: &str) -> Value {
    match value {
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => "a time".into(),
        Value::String(text) if !known.contains(&text) && is_id(&text) => format!("a new {}", &text[..4]).into(),
        // The digest of a question covers the id of its call, that of a large row its times.
        Value::String(text) if !known.contains(&text) && text.trim_start_matches('@').len() == 64 => "a new digest".into(),
        Value::Array(items) => items.into_iter().map(|item| plain(item, known)).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, plain(value, known))).collect(),
        other => other,
    }
}

fn is_id(text: &str) -> bool {
    ["call_", "run_", "conv_", "appr_", "proc_"].iter().any(|prefix| text.strip_prefix(prefix).is_some_and(|rest| rest.len() == 26))
}

#[test]
fn a_step_is_there_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(prepare(&Paths(folder.path().to_owned()))).expect("a record");
    let start = rows(&folder.path().join("record.db"));
    let known = format!("{start:?}{:?}", Log::read::<Value>(&folder.path().join("names")));
    for (step, transaction) in STEPS {
        let whole = after(folder.path(), step, None);
        assert_ne!(whole, start, "{step} changes something");
        let before = after(folder.path(), step, Some(&format!("{transaction}:before")));
        assert_eq!(before, start, "{step}: nothing of it is there");
        let behind = after(folder.path(), step, Some(&format!("{transaction}:after")));
        assert_eq!(without_chance(behind, &known), without_chance(whole, &known), "{step}: all of it is there");
    }
}

/// The tables are made, or brought up to date, as a whole: an open that broke off is done again.
#[test]
fn a_file_is_old_or_new() {
    for (moment, tables) in [("before", false), ("after", true)] {
        let folder = tempfile::tempdir().expect("a folder");
        run("last", folder.path(), None, Some(&format!("open:{moment}")));
        assert_eq!(!rows(&folder.path().join("record.db")).is_empty(), tables, "{moment}");
        run("last", folder.path(), None, None);
        assert!(rows(&folder.path().join("record.db")).contains_key("tasks"));
    }
}
