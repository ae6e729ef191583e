//! Servers that do not end, and what they leave behind.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::stage::{Stage, described, program, settle};

/// Says where a process that ends soon leaves a word.
const BRIEF: &str = "HELVE_TEST_BRIEF";

/// The numbers of the processes of one start of a server, by its mark.
fn marked(mark: &str) -> Vec<u32> {
    let marker = format!("HELVE_SERVER_ID={mark}").into_bytes();
    let of = |entry: fs::DirEntry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        environment.split(|byte| *byte == 0).any(|variable| variable == marker).then_some(number)
    };
    fs::read_dir("/proc").expect("processes").filter_map(|entry| of(entry.ok()?)).collect()
}

/// Kills what this test has started under a mark.
pub fn kill(mark: &str) {
    assert!(mark.len() > 8, "a mark");
    for process in marked(mark) {
        let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
    }
}

/// Waits until nothing of a server is left.
async fn assert_gone(mark: &str) {
    for _ in 0..1000 {
        if marked(mark).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let left = marked(mark).iter().map(|number| fs::read_to_string(format!("/proc/{number}/cmdline"))).collect::<Vec<_>>();
    kill(mark);
    panic!("these are left: {left:?}");
}

/// The mark of a server that is connected as `bad`.
async fn mark(stage: &Stage) -> String {
    let outcome = stage.call("bad_mark", json!({})).await;
    let mark = outcome.output().expect("a mark").text.clone();
    assert!(!marked(&mark).is_empty());
    mark
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_servers_that_scatter_or_do_not_want_to_end() {
    let stage = Stage::new();
    stage
        .beside(async {
            for command in [
                vec![program(), "forks"],
                vec![program(), "lives-on"],
                vec!["sh", "-c", "trap '' TERM HUP; \"$0\" lives-on; sleep 1000", program()],
            ] {
                let stage = Stage::new();
                let bad = stage.connect(described("bad", &command));
                settle(&bad).await;
                let mark = mark(&stage).await;
                stage.catalogue.remove_source(&helve_core::Scope::Global, &helve_core::SourceId::from("mcp:bad"));
                drop(bad);
                assert_gone(&mark).await;
            }
        })
        .await;
}

/// Whoever calls a tool from a command line is gone a moment later.
#[test]
fn nothing_is_left_when_this_program_ends_before_the_server() {
    const NAME: &str = "processes::nothing_is_left_when_this_program_ends_before_the_server";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    if let Some(place) = std::env::var_os(BRIEF) {
        let (stage, bad, mark) = runtime.block_on(async {
            let (stage, bad) = Stage::of_bad("good", &[]).await;
            assert!(stage.call("bad_scatters", json!({})).await.is_success());
            let mark = mark(&stage).await;
            (stage, bad, mark)
        });
        fs::write(place, mark).expect("written");
        drop((stage, bad));
        runtime.shutdown_background();
        std::process::exit(0);
    }
    let place = tempfile::NamedTempFile::new().expect("a file");
    let program = std::env::current_exe().expect("this program");
    let ended = Command::new(program).args([NAME, "--exact"]).env(BRIEF, place.path()).output().expect("it runs");
    assert!(ended.status.success(), "{ended:?}");
    runtime.block_on(assert_gone(&fs::read_to_string(place.path()).expect("a mark")));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_server_that_scatters_during_a_call_and_dies() {
    let stage = Stage::new();
    let bad = stage.bad("good", &[]).await;
    stage
        .beside(async {
            let mark = mark(&stage).await;
            assert!(stage.call("bad_scatters", json!({})).await.is_success());
            assert!(marked(&mark).len() > 4, "it has scattered");
            let outcome = stage.call("bad_dies", json!({})).await;
            assert!(outcome.text().contains("exit status: 7"), "{}", outcome.text());
            assert_gone(&mark).await;
            let again = stage.call("bad_echo", json!({"n": 3})).await;
            assert!(again.is_success(), "it was started again: {again:?}");
        })
        .await;
    drop(bad);
}
