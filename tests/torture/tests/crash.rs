//! The process dies before and after every commit of the store: nothing of the step is there, or all of it.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use helve_core::Store;
use helve_store::SqliteStore;
use helve_torture::crash::{STEPS, prepare};
use helve_torture::server::{Schema, ask, known, rows as asked};
use helve_torture::{Log, Paths, StoreLocation};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value};
use tempfile::TempDir;

/// All rows of all tables, in a form that can be compared.
type Rows = BTreeMap<String, Vec<Map<String, Value>>>;

const SIGABRT: i32 = 6;

/// Starts a child, and lets it die where it is told to.
fn run(part: &str, folder: &Path, place: &StoreLocation, step: Option<&str>, crash: Option<&str>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_torture"));
    command.arg(part).arg(folder).arg(place.to_string()).args(step).envs(crash.iter().map(|at| ("HELVE_CRASH_AT", at)));
    let output = command.output().expect("a child");
    match crash {
        Some(_) => assert_eq!(output.status.signal(), Some(SIGABRT), "{step:?}: {output:?}"),
        None => assert!(output.status.success(), "{step:?}: {output:?}"),
    }
}

fn rows(place: &StoreLocation) -> Rows {
    match place {
        StoreLocation::File(file) => in_file(file),
        StoreLocation::Server(address) => on_server(address),
    }
}

fn in_file(file: &Path) -> Rows {
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
        Cell::Text(text) => written(text),
        // Large rows lie here as text.
        Cell::Blob(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|_| format!("{bytes:?}").into()),
    }
}

/// Text that may be JSON.
fn written(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// The tables of a store on a server, except for the marks of its transactions.
fn tables(address: &str) -> Vec<String> {
    let names = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'helve_marks' ORDER BY 1";
    asked(address, names).into_iter().flatten().flatten().collect()
}

fn on_server(address: &str) -> Rows {
    let read = |table: &String| {
        let rows = asked(address, &format!("SELECT to_jsonb(one) FROM {table} AS one ORDER BY 1")).into_iter().flatten().flatten();
        let row = |row: String| {
            let fields: Map<String, Value> = serde_json::from_str(&row).expect("a row");
            let field = |(name, value)| (name, if let Value::String(text) = value { written(text) } else { value });
            fields.into_iter().map(field).collect()
        };
        rows.map(row).collect()
    };
    tables(address).iter().map(|table| (table.clone(), read(table))).collect()
}

/// The rows without what differs each time: times, new ids, the process.
fn without_chance(rows: Rows, known: &str) -> Rows {
    let chance = ["rank", "due", "updated", "expires", "answered", "until", "process", "started", "claim"];
    let cell = |(name, value): (String, Value)| {
        let value = if chance.contains(&&*name) { Value::Null } else { plain(value, known) };
        (name, value)
    };
    let sorted = |rows: Vec<Map<String, Value>>| {
        let mut rows: Vec<Map<String, Value>> = rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect();
        // Names that the step makes are in no order.
        rows.sort_by_cached_key(|row| format!("{row:?}"));
        rows
    };
    rows.into_iter().map(|(table, rows)| (table, sorted(rows))).collect()
}

fn plain(value: Value, known: &str) -> Value {
    match value {
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => "a time".into(),
        Value::String(text) if !known.contains(&text) && is_id(&text) => format!("a new {}", &text[..4]).into(),
        // The digest of a request covers the id of its call, that of a large row its times.
        Value::String(text) if !known.contains(&text) && text.trim_start_matches('@').len() == 64 => "a new digest".into(),
        Value::Array(items) => items.into_iter().map(|item| plain(item, known)).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, plain(value, known))).collect(),
        other => other,
    }
}

fn is_id(text: &str) -> bool {
    ["call_", "run_", "conv_", "appr_", "proc_"].iter().any(|prefix| text.strip_prefix(prefix).is_some_and(|rest| rest.len() == 26))
}

/// Does a step in a copy of a store, and dies where it is told to. Gives what is in the copy then.
type After<'a> = &'a dyn Fn(&str, Option<&str>) -> Rows;

/// Every step, with both ends.
fn whole_or_not_at_all(start: &Rows, paths: &Paths, after: After<'_>, transactions: &[(&str, &str)]) {
    let known = format!("{start:?}{:?}", Log::read::<Value>(&paths.names()));
    for (step, transaction) in transactions {
        let whole = after(step, None);
        assert_ne!(whole, *start, "{step} changes something");
        let before = after(step, Some(&format!("{transaction}:before")));
        if *transaction == "progress" {
            // A lease is renewed without waiting for anything else, so that much is there.
            assert_eq!(without_chance(before, &known), without_chance(start.clone(), &known), "{step}: nothing else of it is there");
        } else {
            assert_eq!(before, *start, "{step}: nothing of it is there");
        }
        let behind = after(step, Some(&format!("{transaction}:after")));
        assert_eq!(without_chance(behind, &known), without_chance(whole, &known), "{step}: all of it is there");
    }
}

fn prepared(store: &dyn Store, paths: &Paths) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(prepare(store, paths)).expect("a store");
}

fn folder() -> (TempDir, Paths) {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = Paths(folder.path().to_owned());
    (folder, paths)
}

#[test]
fn a_step_is_there_as_a_whole_or_not_at_all() {
    let (_folder, paths) = folder();
    let store = SqliteStore::open(paths.0.join("open.db")).expect("a store");
    prepared(&store, &paths);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    // One file, without a log beside it, which can be copied.
    runtime.block_on(store.backup(&paths.store_file())).expect("a copy");
    let after = |step: &str, crash: Option<&str>| {
        let (_folder, copy) = folder();
        for (from, to) in [(paths.store_file(), copy.store_file()), (paths.names(), copy.names())] {
            std::fs::copy(from, to).expect("a copy");
        }
        let place = StoreLocation::File(copy.store_file());
        run("crash", &copy.0, &place, Some(step), crash);
        rows(&place)
    };
    whole_or_not_at_all(&in_file(&paths.store_file()), &paths, &after, &STEPS);
}

#[test]
fn a_step_on_a_server_is_there_as_a_whole_or_not_at_all() {
    let Some(server) = known("a_step_on_a_server_is_there_as_a_whole_or_not_at_all") else { return };
    let (_folder, paths) = folder();
    let (first, copy) = (Schema::new(&server), Schema::new(&server));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let open = |schema: &Schema| runtime.block_on(StoreLocation::Server(schema.url()).open());
    prepared(&*open(&first), &paths);
    drop(open(&copy));
    let names = tables(&first.url());
    let fill = |table: &String| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM {}.{table};", first.name());
    let fill: String = names.iter().map(fill).collect();
    let after = |step: &str, crash: Option<&str>| {
        ask(&copy.url(), &fill);
        let place = StoreLocation::Server(copy.url());
        run("crash", &paths.0, &place, Some(step), crash);
        rows(&place)
    };
    // How far tasks are is told in a transaction of its own.
    let transactions = STEPS.map(|(step, transaction)| (step, if step == "keep-progress" { "progress" } else { transaction }));
    whole_or_not_at_all(&on_server(&first.url()), &paths, &after, &transactions);
}

/// The tables are made, or brought up to date, as a whole: an open that broke off is done again.
fn old_or_new(place: &dyn Fn(&Paths) -> StoreLocation, table: &str) {
    for (moment, tables) in [("before", false), ("after", true)] {
        let (_folder, paths) = folder();
        let place = place(&paths);
        run("last", &paths.0, &place, None, Some(&format!("open:{moment}")));
        assert_eq!(!rows(&place).is_empty(), tables, "{moment}");
        run("last", &paths.0, &place, None, None);
        assert!(rows(&place).contains_key(table));
    }
}

#[test]
fn a_file_is_old_or_new() {
    old_or_new(&|paths| StoreLocation::File(paths.store_file()), "tasks");
}

#[test]
fn tables_on_a_server_are_old_or_new() {
    let Some(server) = known("tables_on_a_server_are_old_or_new") else { return };
    let schemas = std::cell::RefCell::new(Vec::new());
    let place = |_: &Paths| {
        let schema = Schema::new(&server);
        let place = StoreLocation::Server(schema.url());
        schemas.borrow_mut().push(schema);
        place
    };
    old_or_new(&place, "helve_tasks");
}
