//! Lists of tools that are too long, too large, or lead elsewhere.

use std::time::Duration;

use helve_mcp::ServerReport;
use serde_json::json;
use tokio::net::TcpListener;

use crate::stage::{Stage, assert_clean, offered, reports, trouble};

fn noted(report: &ServerReport, words: &str) {
    for note in &report.notes {
        assert_clean(note);
    }
    assert!(report.notes.iter().any(|note| note.contains(words)), "no note of `{words}`: {:#?}", report.notes);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_cut_and_the_first_tools_work() {
    let stage = Stage::new();
    stage
        .beside(async {
            for (mode, tools, note) in [
                ("too-many-on-pages", 1000, "more than 1000 items"),
                ("new-cursors", 100, "more than 100 pages"),
                ("same-cursor", 1, "repeats a cursor"),
            ] {
                let stage = Stage::new();
                let bad = stage.bad(mode, &[]).await;
                assert_eq!(offered(&bad).len(), tools, "{mode}");
                noted(&bad.report(), note);
                let tool = offered(&bad)[0].clone();
                assert!(stage.call(&tool, json!({})).await.is_success());
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_no_message_can_hold_are_refused_with_a_reason() {
    let stage = Stage::new();
    stage
        .beside(async {
            let (_stage, bad) = Stage::of_bad("far-too-many", &[]).await;
            assert!(trouble(&bad).contains("larger than 16777216 bytes"), "{}", trouble(&bad));
            let (_stage, bad) = Stage::of_bad("too-many", &[]).await;
            assert!(trouble(&bad).contains("more than") && trouble(&bad).contains("values"), "{}", trouble(&bad));
            let (_stage, bad) = Stage::of_bad("deep", &[]).await;
            assert!(trouble(&bad).contains("recursion limit"), "{}", trouble(&bad));
            let (_stage, bad) = Stage::of_bad("none", &[]).await;
            assert!(trouble(&bad).contains("no list `tools`"), "{}", trouble(&bad));
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_too_much_costs_no_other() {
    let stage = Stage::new();
    stage
        .beside(async {
            let (_stage, bad) = Stage::of_bad("big-schema", &[]).await;
            assert_eq!(offered(&bad), ["bad_echo", "bad_also"]);
            noted(&bad.report(), "the tool big is ignored: its definition has");
            let (_stage, bad) = Stage::of_bad("rather-deep", &[]).await;
            assert_eq!(offered(&bad), ["bad_echo"]);
            noted(&bad.report(), "the tool deep is ignored");
            let (_stage, bad) = Stage::of_bad("long-name", &[]).await;
            assert_eq!(offered(&bad), ["bad_echo"]);
            noted(&bad.report(), "is ignored");
            let (_stage, bad) = Stage::of_bad("heavy", &[]).await;
            assert!(bad.report().connected && !offered(&bad).is_empty());
            noted(&bad.report(), "the rest is ignored");
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_fetched_for_a_schema() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let stage = Stage::new();
    let bad = stage.bad("far-reference", &[&port]).await;
    assert_eq!(offered(&bad), ["bad_echo", "bad_far-output"], "{:#?}", bad.report().notes);
    noted(&bad.report(), "the tool far is ignored");
    assert!(stage.call("bad_far-output", json!({})).await.is_success());
    let fetched = tokio::time::timeout(Duration::from_millis(200), listener.accept()).await;
    assert!(fetched.is_err(), "somebody came to fetch a schema");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_changes_its_list_all_the_time_does_not_keep_anyone_busy() {
    let stage = Stage::new();
    stage
        .beside(async {
            let bad = Stage::new();
            let source = bad.bad("flips", &[]).await;
            reports(&source, "evil", |report| report.offers.iter().any(|offer| offer.definition["description"] == "evil")).await;
            assert!(bad.call("bad_steady", json!({})).await.is_success());
        })
        .await;
}
