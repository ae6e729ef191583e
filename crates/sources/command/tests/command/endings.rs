//! What a program that exits by itself leaves behind is cleaned up. [`call`] checks for it.

use serde_json::json;

use crate::support::{Project, call, error, text};

#[tokio::test]
async fn children_in_the_background_do_not_hold_the_call() {
    let project = Project::new();
    for script in ["sleep 1000 & echo done", "sleep 1000 >/dev/null 2>&1 & echo done", "(sleep 1000; sleep 1000) & sleep 1000 & echo done"]
    {
        assert_eq!(text(&project.sh(script), json!({})).await, "done", "{script}");
    }
    let failed = error(&project.sh("sleep 1000 & exit 4"), json!({})).await;
    assert!(failed.starts_with("failed: the program exited with status 4"), "{failed}");
}

/// A child that holds the pipe open hides the end of the output.
#[tokio::test]
async fn what_was_written_before_the_end_is_read() {
    let project = Project::new();
    let said = text(&project.sh("sleep 1000 & head -c 60000 /dev/zero | tr '\\0' x"), json!({})).await;
    assert_eq!(said, "x".repeat(60_000));
}

/// The daemon reports that it has left the group before its parent exits.
#[tokio::test]
async fn daemons_are_swept() {
    let project = Project::new();
    for streams in ["", "</dev/null >/dev/null 2>&1"] {
        let script = format!(
            "rm -f daemon; setsid sh -c 'echo $$ > daemon; exec sleep 1000' {streams} & while [ ! -s daemon ]; do sleep 0.01; done; echo done"
        );
        assert_eq!(text(&project.sh(&script), json!({})).await, "done");
    }
}

#[tokio::test]
async fn daemons_of_a_flood_are_swept() {
    let project = Project::new();
    let script = "setsid sh -c 'echo $$ > daemon; exec sleep 1000' & while [ ! -s daemon ]; do sleep 0.01; done; yes";
    let said = error(&project.sh(script), json!({})).await;
    assert!(said.contains("output limit"), "{said}");
}

/// A program that closes its streams is still running.
#[tokio::test]
async fn closed_streams_are_not_the_end() {
    let project = Project::new();
    let result = call(&project.sh("exec >&- 2>&- <&-; sleep 0.05; echo x > finished; exit 5"), json!({})).await;
    assert_eq!(result.expect_err("a failure").details()["exit_status"], 5);
    assert!(project.has("finished"));
}
