//! Symbolic links in a folder that lead out of it: nothing is written through them, and nothing behind them counts as the folder's.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::folder::{Project, stderr, stdout};
use crate::stores::REPORT;

/// A project in which a name leads to a folder elsewhere, or to something in it that is not there.
fn linked(name: &str, to: &str) -> (Project, TempDir) {
    let (project, outside) = (Project::new(&[]), tempfile::tempdir().expect("a folder"));
    let link = project.folder.path().join(name);
    fs::create_dir_all(link.parent().expect("a parent")).expect("a folder");
    symlink(outside.path().join(to), link).expect("a link");
    (project, outside)
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).expect("a folder").next().is_none()
}

/// Neither the server's file nor a folder for it is made elsewhere.
#[test]
fn a_server_is_not_added_through_a_link() {
    for (name, to) in [
        ("tools", ""),
        ("tools", "new"),
        ("tools/mcp", ""),
        ("tools/mcp", "new"),
        ("tools/mcp/added.yaml", "new"),
        ("tools/mcp/added.yaml", ""),
    ] {
        let (project, outside) = linked(name, to);
        project.write("mcp.json", br#"{"mcpServers": {"added": {"command": "cat"}}}"#);
        let file = project.folder.path().join("mcp.json");
        for words in [&["mcp", "add", "added", "--", "cat"][..], &["mcp", "import", file.to_str().expect("a name")]] {
            let refused = project.run(words);
            assert!(!refused.status.success(), "{name} to {to:?}: {words:?}");
            let said = stdout(&refused) + &stderr(&refused);
            assert!(said.contains("tools/mcp/added.yaml"), "{name} to {to:?}: {said}");
            assert!(is_empty(outside.path()), "{name} to {to:?}: {words:?}");
        }
    }
}

#[test]
fn a_sample_is_not_written_through_a_link() {
    for (name, to) in [("tools", ""), ("tools/builtin", ""), ("agents", ""), ("agents", "new"), ("helve.yaml", "new")] {
        let (project, outside) = linked(name, to);
        let refused = project.run(&["init"]);
        assert!(!refused.status.success() && stderr(&refused).contains("symbolic link"), "{name}: {}", stderr(&refused));
        assert!(is_empty(outside.path()), "{name}");
        assert!(!project.folder.path().join("tool_sets").exists(), "{name}: nothing is half written");
    }
}

/// A journal is played back into its store when that is opened, so it counts like the store itself.
#[test]
fn a_journal_beside_a_store_in_the_folder_counts() {
    for ending in ["-journal", "-wal"] {
        let project = Project::new(&[REPORT]);
        let store = project.folder.path().join(".helve/helve.db");
        fs::create_dir(project.folder.path().join(".helve")).expect("a folder");
        let accepted = project.json(&["--store", &format!("sqlite:{}", store.display()), "tools", "call", "report", "--json"]);
        assert_eq!(accepted["status"], "accepted", "{accepted}");
        assert!(project.run(&["trust", "--yes"]).status.success());
        assert_eq!(project.json(&["trust", "--json"])["trusted"], json!(true));
        project.write(&format!(".helve/helve.db{ending}"), b"what somebody else prepared");
        let asked = project.json(&["trust", "--json"]);
        assert_eq!(asked["trusted"], json!(false), "{ending}: {asked}");
        assert!(asked.to_string().contains(&format!("helve.db{ending}")), "the question names it: {asked}");
    }
}
