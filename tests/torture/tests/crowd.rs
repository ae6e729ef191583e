//! Nodes with a thousand subscribers each are killed, and no subscriber misses an event or gets one twice.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test that goes wrong should stop, one that measures should say what")]

use helve_torture::crowd::Crowd;
use helve_torture::server::{Schema, known};
use helve_torture::{Paths, StoreLocation};

fn nobody_misses_anything(folder: &std::path::Path, place: StoreLocation) {
    let heard = Crowd { program: env!("CARGO_BIN_EXE_torture").into(), kills: 5, place }.run(folder);
    assert!(heard.wrong.is_empty(), "{heard:?}");
    assert!(heard.events > 4 && heard.told_by_killed > 0, "something happened before the last one: {heard:?}");
    eprintln!("{heard:?}");
}

#[test]
fn subscribers_go_on_at_another_node_with_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    nobody_misses_anything(folder.path(), StoreLocation::File(Paths(folder.path().to_owned()).store_file()));
}

#[test]
fn subscribers_go_on_at_another_node_with_postgresql() {
    let Some(server) = known("subscribers_go_on_at_another_node_with_postgresql") else { return };
    let (folder, schema) = (tempfile::tempdir().expect("a folder"), Schema::new(&server));
    nobody_misses_anything(folder.path(), StoreLocation::Server(schema.url()));
}
