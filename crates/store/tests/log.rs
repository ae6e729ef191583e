//! The write-ahead log of a store stays short, even if there is always a reader.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use helve_core::Store;
use helve_store::SqliteStore;
use rusqlite::Connection;

const BODIES: u8 = 100;
const SIZE: usize = 1 << 20;
/// The log may become so long, and by one body longer.
const LONGEST: u64 = 50 << 20;

/// Holds on to what it sees for a while, again and again.
fn read(file: &Path, over: &AtomicBool) {
    let connection = Connection::open(file).expect("a database");
    while !over.load(Ordering::Relaxed) {
        connection.execute_batch("BEGIN").expect("begun");
        let _: i64 = connection.query_row("SELECT count(*) FROM bodies", [], |row| row.get(0)).expect("a count");
        std::thread::sleep(Duration::from_millis(200));
        connection.execute_batch("COMMIT").expect("ended");
    }
}

#[tokio::test]
async fn the_log_stays_short_while_readers_relieve_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let store = SqliteStore::open(&file).expect("a store");
    let over = Arc::new(AtomicBool::new(false));
    let readers = (0..2).map(|number| {
        let (file, over) = (file.clone(), over.clone());
        std::thread::spawn(move || {
            // One begins before the other ends.
            std::thread::sleep(Duration::from_millis(100 * number));
            read(&file, &over);
        })
    });
    let readers: Vec<_> = readers.collect();
    let mut longest = 0;
    for number in 0..BODIES {
        store.put_body(&vec![number; SIZE]).await.expect("kept");
        longest = longest.max(std::fs::metadata(folder.path().join("store.db-wal")).expect("a log").len());
    }
    over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().expect("a reader");
    }
    assert!(longest < LONGEST, "{longest} bytes");
}
