//! Servers that begin badly, or not at all.

use futures_util::future::join_all;
use serde_json::json;

use crate::stage::{Stage, assert_clean, described, offered, program, reports, server, settle, trouble};

/// All that takes long is waited for at once.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_say_nothing_are_given_up_and_one_that_is_only_busy_is_started_again() {
    let stage = Stage::new();
    let bad = |name: &str, mode: &str, flags: &[&str]| stage.connect(server(name, mode, flags));
    let (silent, deaf, mute) = (bad("silent", "silent", &[]), bad("deaf", "deaf", &[]), bad("mute", "mute", &[]));
    let (endless, blank) = (bad("endless", "endless-line", &[]), bad("blank", "blank", &[]));
    let (unlisted, modern) = (bad("unlisted", "never", &[]), bad("modern", "never", &["x", "--modern"]));
    let (slow, busy) = (bad("slow", "slow-pages", &[]), bad("busy", "busy", &[]));
    stage
        .beside(async {
            let all = [&silent, &deaf, &mute, &endless, &blank, &unlisted, &modern, &slow, &busy];
            tokio::join!(does_not_come_back(), join_all(all.map(|source| settle(source))));
        })
        .await;
    for source in [&silent, &deaf, &mute, &unlisted, &modern] {
        assert_eq!(trouble(source), "request timed out after 30 s", "{}", source.report().name);
    }
    for (source, why) in [(&endless, "a line that does not end"), (&blank, "invalid lines")] {
        assert!(trouble(source).contains(why), "{}", trouble(source));
    }
    let report = slow.report();
    assert!(report.connected && report.notes.iter().any(|note| note.contains("30 s")), "{report:#?}");
    assert!(offered(&busy).contains(&"busy_echo".to_owned()), "{:#?}", busy.report());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_writes_garbage_is_no_server() {
    let stage = Stage::new();
    let bad = stage.beside(stage.bad("garbage", &[])).await;
    let why = trouble(&bad);
    assert!(why.contains("100 invalid lines") && why.contains("Listening"), "{why}");
    assert_clean(&why);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_dies_says_why_and_is_not_started_without_end() {
    let stage = Stage::new();
    let bad = stage.beside(stage.bad("dies", &[])).await;
    let why = trouble(&bad);
    assert!(why.contains("exit status: 3") && why.contains("no licence"), "{why}");
    assert_clean(&why);
    let gone = Stage::new();
    let bad = gone.connect(server("bad", "leaves-at-once", &[]));
    let report = gone.beside(reports(&bad, "given up", |report| report.error.is_some())).await;
    let why = report.error.expect("a reason");
    assert!(why.contains("program has ended"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_in_a_greeting_is_named() {
    let stage = Stage::new();
    stage
        .beside(async {
            for (mode, says) in [("version", "9999-99-99"), ("refuses", "go away"), ("refuses-version", "too old")] {
                let (_stage, bad) = Stage::of_bad(mode, &[]).await;
                let why = trouble(&bad);
                assert!(why.contains(says), "{mode}: {why}");
                assert_clean(&why);
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_about_capabilities_leaves_a_server_without_tools() {
    for mode in ["capabilities-list", "capabilities-null"] {
        for flags in [&[][..], &["x", "--modern"]] {
            let (_stage, bad) = Stage::of_bad(mode, flags).await;
            let report = bad.report();
            assert!(report.connected && report.offers.is_empty() && offered(&bad).is_empty(), "{report:#?}");
            assert!(report.notes.iter().any(|note| note.contains("does not declare the capability `tools`")), "{report:#?}");
            assert_clean(report.server.as_deref().expect("a name"));
        }
    }
    let (_stage, odd) = Stage::of_bad("capabilities-text", &[]).await;
    assert!(offered(&odd).contains(&"bad_echo".to_owned()), "{:#?}", odd.report());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_closes_its_output_but_lives_is_ended_and_named() {
    let stage = Stage::new();
    let closed = stage.connect(described("bad", &["sh", "-c", "exec >&-; trap '' TERM; sleep 1000; sleep 1000"]));
    stage.beside(settle(&closed)).await;
    assert!(trouble(&closed).contains("it closed its output"), "{}", trouble(&closed));
}

/// A server that stood once and then never answers again must not look connected for ever.
async fn does_not_come_back() {
    let (stage, folder) = (Stage::new(), tempfile::tempdir().expect("a folder"));
    let mark = folder.path().join("was-here");
    let script = format!("[ -e '{0}' ] && exec sleep 1000; touch '{0}'; exec '{1}' good", mark.display(), program());
    let bad = stage.connect(described("bad", &["sh", "-c", &script]));
    settle(&bad).await;
    let outcome = stage.call("bad_dies", json!({})).await;
    assert!(outcome.text().starts_with("interrupted: "), "{}", outcome.text());
    let report = reports(&bad, "reported as gone", |report| !report.connected).await;
    assert!(report.error.is_some_and(|why| why.contains("timed out")));
}
