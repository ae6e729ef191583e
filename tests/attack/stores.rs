//! Store files and state folders that somebody else prepared.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rusqlite::Connection;
use serde_json::Value;

use crate::folder::{Project, stderr, stdout};

/// Writes down that it ran, in the background.
pub const REPORT: (&str, &str) = (
    "tools/builtin/report.yaml",
    "name: report\ndescription: Writes a report.\nmode: background\ncommand: [sh, -c, \"cat > /dev/null; echo ran >> ran.log\"]\nparameters: [{name: topic, default: bees}]\n",
);

impl Project {
    /// How often the tool that writes it down ran.
    pub fn ran(&self) -> usize {
        fs::read_to_string(self.folder.path().join("ran.log")).unwrap_or_default().lines().count()
    }

    /// A store in which a call waits that a person made, as the option that names it.
    pub fn queued(&self) -> (PathBuf, String) {
        let file = self.state.path().join("planted.db");
        let store = format!("--store=sqlite:{}", file.display());
        let accepted = self.json(&[&store, "tools", "call", "report", "--json"]);
        assert_eq!(accepted["status"], "accepted", "{accepted}");
        (file, store)
    }

    /// The same command under a umask.
    fn under(&self, umask: &str, arguments: &[&str]) -> Output {
        let plain = self.command(arguments);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]).arg(plain.get_program()).args(plain.get_args());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.output().expect("helve runs")
    }
}

/// Changes a store behind Helve's back.
pub fn change(file: &Path, sql: &str) {
    Connection::open(file).and_then(|connection| connection.execute_batch(sql)).expect("a change");
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}

fn message(output: &Output) -> String {
    assert!(!output.status.success(), "{}", stdout(output));
    let error: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}{}", stdout(output), stderr(output)));
    assert_eq!(error["error"]["kind"], "storage", "{error}");
    error["error"]["message"].as_str().expect("a message").to_owned()
}

/// A trigger would put a call in the queue while somebody says no to it.
#[test]
fn a_store_that_brings_its_own_code_is_refused() {
    let waits =
        "INSERT INTO tasks SELECT 'call_01M7GH0NV0ASXMH73GMC4XK7KR', 'queued', 0, 0, new.body ->> 'definition', NULL, NULL, 0, 0, 0,
        0, 0, 0, NULL, NULL, new.body FROM approvals";
    for (what, sql) in [
        ("trigger `t`", format!("CREATE TRIGGER t AFTER INSERT ON approvals BEGIN {waits}; END")),
        ("view `v`", "CREATE VIEW v AS SELECT 1".to_owned()),
        ("table `more`", "CREATE TABLE more (x DEFAULT (abs(random())))".to_owned()),
    ] {
        let project = Project::new(&[REPORT]);
        let (file, store) = project.queued();
        change(&file, &sql);
        for command in [&["tasks"][..], &["worker", "--until-empty"], &["tools", "call", "report"]] {
            let output = project.run(&[&[store.as_str(), "--json"], command].concat());
            let said = message(&output);
            assert!(said.contains(what) && said.contains("planted.db"), "{command:?}: {said}");
        }
        // It serves tools that need no store.
        project.run(&[&store, "mcp", "serve", "--stdio"]);
        assert_eq!(project.ran(), 0);
    }
}

#[test]
fn a_store_is_reached_through_no_link() {
    for ending in ["", "-wal", "-shm", "-journal", "-lock"] {
        let project = Project::new(&[REPORT]);
        let (link, elsewhere) = (project.state.path().join(format!("x.db{ending}")), project.state.path().join("elsewhere"));
        symlink(&elsewhere, &link).expect("a link");
        let store = format!("--store=sqlite:{}", project.state.path().join("x.db").display());
        let said = message(&project.run(&[&store, "tools", "call", "report", "--json"]));
        assert!(said.contains("symbolic link") && said.contains(&*link.file_name().expect("a name").to_string_lossy()), "{said}");
        assert!(!elsewhere.exists(), "{ending}");
    }
    let project = Project::new(&[REPORT]);
    let (file, store) = project.queued();
    fs::hard_link(&file, project.state.path().join("other")).expect("a link");
    assert!(message(&project.run(&[&store, "tasks", "--json"])).contains("hard links"));
}

#[test]
fn a_store_and_its_copy_are_their_owners_alone() {
    let project = Project::new(&[REPORT]);
    let (folder, copy) = (project.state.path().join("made"), project.state.path().join("copy.db"));
    let store = format!("--store=sqlite:{}", folder.join("x.db").display());
    assert!(project.under("000", &[&store, "tools", "call", "report"]).status.success());
    assert_eq!((mode(&folder), mode(&folder.join("x.db"))), (0o700, 0o600));
    assert!(project.under("000", &[&store, "backup", copy.to_str().expect("a name")]).status.success());
    assert_eq!(mode(&copy), 0o600);
    let (link, elsewhere) = (project.state.path().join("link.db"), project.state.path().join("elsewhere"));
    symlink(&elsewhere, &link).expect("a link");
    assert!(!project.run(&[&store, "backup", link.to_str().expect("a name")]).status.success());
    assert!(!elsewhere.exists());
}

/// Whoever may write to the state folder decides what is trusted.
#[test]
fn a_state_folder_that_others_may_write_to_is_not_believed() {
    let project = Project::new(&[REPORT]);
    assert!(project.run(&["trust", "--yes"]).status.success());
    let state = project.state.path().join("helve");
    let trust = state.join("trust.json");
    assert_eq!((mode(&state), mode(&trust)), (0o700, 0o600));
    let trusted = || project.json(&["trust", "--json"])["trusted"] == true;
    assert!(trusted());
    let set = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permissions");

    set(&state, 0o777);
    let output = project.run(&["trust", "--yes", "--json"]);
    let said = message(&output);
    assert!(said.contains("chmod 700") && said.contains(&*state.to_string_lossy()), "{said}");
    set(&state, 0o755);
    assert!(trusted() && mode(&state) == 0o700, "what others can only read is closed");

    set(&trust, 0o666);
    assert!(message(&project.run(&["trust", "--yes", "--json"])).contains("chmod 600"));
    set(&trust, 0o600);
    assert!(trusted());
    fs::rename(&trust, state.join("elsewhere.json")).expect("moved");
    symlink(state.join("elsewhere.json"), &trust).expect("a link");
    assert!(message(&project.run(&["trust", "--yes", "--json"])).contains("symbolic link"));
}
