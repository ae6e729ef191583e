//! Floods: what they may take of this machine. Each runs in a process of its own, because the memory of a process is that of all its tests.

use std::fs;
use std::future::Future;
use std::process::Command;

use serde_json::json;

use crate::http::{connect, on_call};
use crate::site::{Reply, head, stream};
use crate::stage::{Stage, trouble};

/// Says in which process a test is.
const ALONE: &str = "HELVE_TEST_ALONE";
/// What an attack may cost.
const ROOM: u64 = 64 << 20;

/// The most memory that this process ever had, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Runs an attack in a process of its own, beside a good server, and holds it to its room.
fn alone<F: Future<Output = ()>>(name: &str, attack: impl FnOnce(Stage) -> F) {
    if std::env::var_os(ALONE).is_none() {
        let test = format!("memory::{name}");
        let program = std::env::current_exe().expect("this program");
        let run = Command::new(program).args([&test, "--exact", "--nocapture"]).env(ALONE, "1").output().expect("it runs");
        let said = [run.stdout, run.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
        assert!(run.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let warm = Stage::new();
        warm.beside(warm.bad("good", &[])).await;
        let before = peak();
        let stage = Stage::new();
        warm.beside(attack(stage)).await;
        let grown = peak().saturating_sub(before);
        assert!(grown < ROOM, "{name} took {} MiB", grown >> 20);
    });
}

/// What a flood in answer to a call ends in.
async fn call(stage: Stage, tool: &str, says: &str) {
    let _bad = stage.bad("good", &[]).await;
    let outcome = stage.call(&format!("bad_{tool}"), json!({})).await;
    let text = outcome.text();
    assert!(text.contains(says), "{}", text.chars().take(1000).collect::<String>());
    drop(outcome);
    let next = stage.call("bad_echo", json!({})).await;
    assert!(next.is_success(), "{next:?}");
}

#[test]
fn a_hundred_megabytes_on_one_line_are_refused() {
    alone("a_hundred_megabytes_on_one_line_are_refused", |stage| call(stage, "huge-line", "larger than 16777216 bytes"));
}

#[test]
fn a_hundred_megabytes_of_blocks_are_refused() {
    alone("a_hundred_megabytes_of_blocks_are_refused", |stage| call(stage, "huge-blocks", "larger than 16777216 bytes"));
}

#[test]
fn a_message_of_many_small_blocks_is_refused() {
    alone("a_message_of_many_small_blocks_is_refused", |stage| call(stage, "blocks", "more than"));
}

#[test]
fn a_message_of_many_numbers_is_refused() {
    alone("a_message_of_many_numbers_is_refused", |stage| call(stage, "numbers", "more than"));
}

/// As much as is just not refused.
#[test]
fn messages_of_rather_many_values_are_taken() {
    alone("messages_of_rather_many_values_are_taken", |stage| async move {
        let _bad = stage.bad("good", &[]).await;
        for tool in ["bad_blocks-some", "bad_objects-some"] {
            assert!(stage.call(tool, json!({})).await.is_success(), "{tool}");
        }
    });
}

#[test]
fn a_large_text_is_taken() {
    alone("a_large_text_is_taken", |stage| call(stage, "large-text", "xxx"));
}

#[test]
fn a_hundred_megabytes_of_progress_pass_by() {
    alone("a_hundred_megabytes_of_progress_pass_by", |stage| call(stage, "progress", "done"));
}

#[test]
fn hundreds_of_thousands_of_log_lines_pass_by() {
    alone("hundreds_of_thousands_of_log_lines_pass_by", |stage| call(stage, "logs", "done"));
}

#[test]
fn a_hundred_megabytes_on_stderr_pass_by() {
    alone("a_hundred_megabytes_on_stderr_pass_by", |stage| call(stage, "whispers", "done"));
}

#[test]
fn questions_with_huge_ids_are_not_kept() {
    alone("questions_with_huge_ids_are_not_kept", |stage| call(stage, "fat-pings", "done"));
}

#[test]
fn news_of_huge_addresses_are_not_kept() {
    alone("news_of_huge_addresses_are_not_kept", |stage| call(stage, "fat-news", "done"));
}

#[test]
fn a_hundred_thousand_tools_are_not_kept() {
    alone("a_hundred_thousand_tools_are_not_kept", |stage| async move {
        let bad = stage.bad("too-many", &[]).await;
        assert!(trouble(&bad).contains("more than"), "{}", trouble(&bad));
    });
}

#[test]
fn schemas_that_are_small_on_the_line_and_large_in_memory_are_refused() {
    alone("schemas_that_are_small_on_the_line_and_large_in_memory_are_refused", |stage| async move {
        for mode in ["dense", "dense-objects"] {
            let (_stage, bad) = Stage::of_bad(mode, &[]).await;
            assert!(trouble(&bad).contains("more than"), "{}", trouble(&bad));
        }
        drop(stage);
    });
}

#[test]
fn many_heavy_tools_are_cut() {
    alone("many_heavy_tools_are_cut", |stage| async move {
        let bad = stage.bad("heavy", &[]).await;
        assert!(bad.report().connected);
    });
}

#[test]
fn a_line_without_an_end_is_not_kept() {
    alone("a_line_without_an_end_is_not_kept", |stage| async move {
        let bad = stage.bad("endless-line", &[]).await;
        assert!(!bad.report().connected);
    });
}

/// What becomes of a call over HTTP that is answered with the same thing over and over.
async fn flood(stage: Stage, headers: Vec<u8>, again: &str, says: &str) {
    let again = again.repeat((64 << 10) / again.len()).into_bytes();
    let site = on_call(move |_| Reply::Drip(headers.clone(), again.clone(), std::time::Duration::ZERO)).await;
    let _bad = connect(&stage, &site, "40s").await;
    let outcome = stage.call("bad_echo", json!({})).await;
    assert!(outcome.text().contains(says), "{}", outcome.text());
}

const JSON: &str = "Content-Type: application/json\r\nConnection: close";

#[test]
fn a_body_without_an_end_is_refused() {
    alone("a_body_without_an_end_is_refused", |stage| flood(stage, head("200 OK", JSON, "{\"a\":\""), "x", "larger than 16777216 bytes"));
}

#[test]
fn an_event_without_an_end_is_refused() {
    alone("an_event_without_an_end_is_refused", |stage| flood(stage, stream("data: {\"a\":\""), "x", "larger than 16777216 bytes"));
}

#[test]
fn an_event_of_lines_without_an_end_is_refused() {
    alone("an_event_of_lines_without_an_end_is_refused", |stage| {
        flood(
            stage,
            stream(""),
            "data: an event of many lines that does not come to its end, however long one waits\n",
            "larger than 16777216 bytes",
        )
    });
}

#[test]
fn a_batch_of_many_messages_is_refused() {
    alone("a_batch_of_many_messages_is_refused", |stage| async move {
        let body = format!("[0{}]", ",0".repeat(7 << 20));
        let whole = head("200 OK", &format!("{JSON}\r\nContent-Length: {}", body.len()), &body);
        drop(body);
        let site = on_call(move |_| Reply::Bytes(whole.clone())).await;
        let _bad = connect(&stage, &site, "40s").await;
        let outcome = stage.call("bad_echo", json!({})).await;
        assert!(outcome.text().contains("more than 100000 values"), "{}", outcome.text());
    });
}
