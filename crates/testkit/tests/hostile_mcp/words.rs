//! Words that hide, move the cursor, or turn the line around.

use helve_core::{SourceState, ToolSource};
use helve_mcp::{Flag, inspect};
use serde_json::json;

use crate::stage::{Stage, assert_clean, offered};

#[tokio::test(flavor = "multi_thread")]
async fn names_that_hide_something_are_left_out_and_descriptions_lose_it() {
    let stage = Stage::new();
    let bad = stage.bad("names", &[]).await;
    assert_eq!(offered(&bad), ["bad_echo", "bad_titled"]);
    let report = bad.report();
    assert_eq!(report.notes.len(), 6, "{:#?}", report.notes);
    report.notes.iter().for_each(|note| assert_clean(note));
    assert_clean(report.server.as_deref().expect("a name"));
    let now = bad.tools().borrow().clone();
    let SourceState::Ready(tools) = now else { panic!("no tools") };
    for tool in tools.as_slice() {
        assert_clean(tool.spec().description());
        assert_clean(tool.spec().title().unwrap_or_default());
        assert_clean(tool.spec().input().text());
    }
    // Whoever is asked to agree is told.
    assert!(report.offers.iter().all(|offer| inspect(&offer.definition, &[]).contains(&Flag::Hidden)), "{report:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_told_in_clean_words() {
    let stage = Stage::new();
    let _bad = stage.bad("good", &[]).await;
    for (tool, says) in [
        ("strange-error", "failed: the server `bad`:"),
        ("huge-error", "invalid_parameters: the server `bad`:"),
        ("kinds", "content of unknown type"),
        ("promise", "invalid_output: the tool's result does not match its own schema"),
        ("nothing", "failed: the tool gives no reason"),
        ("no-object", "invalid_output: the server's result is not an object"),
        ("no-list", "invalid_output: the server's result has a `content` that is not a list"),
        ("garbled", "protocol error: invalid JSON"),
        ("deep", "protocol error: invalid JSON: recursion limit"),
    ] {
        let outcome = stage.call(&format!("bad_{tool}"), json!({})).await;
        assert!(outcome.text().contains(says), "{tool}: {}", outcome.text());
        outcome.text().lines().for_each(assert_clean);
    }
    // A result is the tool's own words: it stays as it is, and whoever shows it makes it safe.
    let outcome = stage.call("bad_ansi", json!({})).await;
    assert!(outcome.text().contains("hidden"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_of_an_unknown_type_is_refused_in_the_newer_era() {
    let stage = Stage::new();
    let _bad = stage.bad("good", &["x", "--modern"]).await;
    let outcome = stage.call("bad_result-type", json!({})).await;
    assert!(outcome.text().contains("result of the unknown type") && outcome.text().contains("mystery"), "{}", outcome.text());
    assert_clean(&outcome.text());
    assert!(stage.call("bad_echo", json!({})).await.is_success());
}
