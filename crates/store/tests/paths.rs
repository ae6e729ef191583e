//! The files of a SQLite store: whose they are, through what they are reached, and that their tables are Helve's own.

#![cfg(unix)]
#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use helve_core::{Store, StoreError};
use helve_store::SqliteStore;
use rusqlite::Connection;

/// Names the file that a child of this test opens.
const FILE: &str = "HELVE_TEST_PLACE";
const FILES: [&str; 5] = ["", "-wal", "-shm", "-journal", "-lock"];

fn beside(file: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", file.display()))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}

fn refusal(file: &Path) -> String {
    match SqliteStore::open(file) {
        Ok(_) => panic!("{} was opened", file.display()),
        Err(error) => error.to_string(),
    }
}

/// A store that was used and closed.
fn used(folder: &Path) -> PathBuf {
    let file = folder.join("store.db");
    drop(SqliteStore::open(&file).expect("a store"));
    file
}

#[tokio::test]
async fn only_the_owner_can_read_whatever_the_umask() {
    if let Some(file) = std::env::var_os(FILE).map(PathBuf::from) {
        let store = SqliteStore::open(&file).expect("a store");
        store.recover(helve_core::HolderId::mint()).await.expect("the lock");
        let copy = file.with_file_name("copy.db");
        store.backup(&copy).await.expect("a copy");
        for ending in ["", "-wal", "-shm", "-lock"] {
            assert_eq!(mode(&beside(&file, ending)), 0o600, "{ending}");
        }
        assert_eq!((mode(&copy), mode(file.parent().expect("a folder"))), (0o600, 0o700));
        return;
    }
    for umask in ["000", "022", "077"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = Command::new("sh");
        child.args(["-c", &format!("umask {umask}; exec \"$0\" --exact only_the_owner_can_read_whatever_the_umask")]);
        child.arg(std::env::current_exe().expect("this program")).env(FILE, folder.path().join("inside/store.db"));
        let output = child.output().expect("a child");
        assert!(output.status.success(), "{umask}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_store_that_was_open_to_others_is_closed_to_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = used(folder.path());
    fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("permissions");
    let _store = SqliteStore::open(&file).expect("a store");
    for ending in ["", "-wal", "-shm"] {
        assert_eq!(mode(&beside(&file, ending)), 0o600, "{ending}");
    }
}

#[test]
fn a_symbolic_link_is_not_followed() {
    for ending in FILES {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, elsewhere) = (folder.path().join("store.db"), folder.path().join("elsewhere"));
        symlink(&elsewhere, beside(&file, ending)).expect("a link");
        assert!(refusal(&file).contains("symbolic link"), "{ending}");
        assert!(!elsewhere.exists(), "{ending}");
        fs::write(&elsewhere, "mine").expect("a file");
        assert!(refusal(&file).contains("symbolic link"), "{ending}");
        assert_eq!(fs::read_to_string(&elsewhere).expect("a file"), "mine", "{ending}");
    }
}

#[test]
fn the_folder_of_a_store_may_be_a_symbolic_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::create_dir(&real).expect("a folder");
    symlink(&real, &link).expect("a link");
    let _store = SqliteStore::open(link.join("store.db")).expect("a store");
    assert!(real.join("store.db").is_file());
}

#[test]
fn a_file_that_is_not_the_users_alone_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = used(folder.path());
    fs::hard_link(&file, folder.path().join("other")).expect("a link");
    assert!(refusal(&file).contains("hard links"));
    fs::remove_file(&file).expect("removed");
    fs::create_dir(&file).expect("a folder");
    assert!(refusal(&file).contains("regular"));
}

#[tokio::test]
async fn a_copy_is_written_through_no_link_and_over_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(folder.path().join("store.db")).expect("a store");
    let (copy, elsewhere) = (folder.path().join("copy.db"), folder.path().join("elsewhere"));
    symlink(&elsewhere, &copy).expect("a link");
    assert!(matches!(store.backup(&copy).await, Err(StoreError::Conflict(_))));
    assert!(!elsewhere.exists());
    fs::write(&elsewhere, "").expect("a file");
    assert!(matches!(store.backup(&elsewhere).await, Err(StoreError::Conflict(_))), "an empty file is a file, too");
}

/// What another user could add to a file, or change in it, so that it does more than hold rows.
const CHANGES: [(&str, &str); 8] = [
    ("trigger `t`", "CREATE TRIGGER t AFTER INSERT ON approvals BEGIN DELETE FROM tasks; END"),
    ("view `v`", "CREATE VIEW v AS SELECT * FROM tasks"),
    ("table `extra`", "CREATE TABLE extra (id TEXT)"),
    ("index `extra`", "CREATE INDEX extra ON tasks (abs(rank))"),
    ("table `tasks`", "ALTER TABLE tasks ADD COLUMN more TEXT GENERATED ALWAYS AS (upper(body)) VIRTUAL"),
    (
        "table `holders`",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'DEFAULT 0', 'DEFAULT 1') WHERE name = 'holders'",
    ),
    ("index `tasks_queue` is missing", "DROP INDEX tasks_queue"),
    ("table `tasks`", "DROP TABLE tasks; CREATE VIRTUAL TABLE tasks USING fts5(body)"),
];

#[test]
fn tables_that_helve_did_not_make_are_refused() {
    for (what, sql) in CHANGES {
        let folder = tempfile::tempdir().expect("a folder");
        let file = used(folder.path());
        let changed = Connection::open(&file).and_then(|connection| connection.execute_batch(sql));
        if let Err(error) = changed {
            // Not every build of SQLite has every module.
            assert!(error.to_string().contains("no such module"), "{what}: {error}");
            continue;
        }
        let said = refusal(&file);
        assert!(said.contains(what) && said.contains("store.db") && said.contains("another program"), "{said}");
    }
}

#[test]
fn a_database_of_another_program_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("other.db");
    Connection::open(&file).and_then(|connection| connection.execute_batch("CREATE TABLE mine (id TEXT)")).expect("a database");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).expect("permissions");
    let before = fs::read(&file).expect("a file");
    assert!(refusal(&file).contains("another program"));
    assert_eq!((fs::read(&file).expect("a file"), mode(&file)), (before, 0o640));
}

/// Several processes may open a new file at the same moment: a server and a command beside it.
#[test]
fn a_new_file_can_be_opened_many_times_at_once() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("new.db");
        let barrier = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    SqliteStore::open(&file).map(drop).expect("a store");
                });
            }
        });
    }
}
