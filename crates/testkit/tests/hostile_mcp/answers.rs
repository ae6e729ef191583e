//! Answers that are wrong, late, doubled or never given.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::stage::{Stage, server, settle};

#[tokio::test(flavor = "multi_thread")]
async fn only_the_answer_to_a_question_counts() {
    let stage = Stage::new();
    let _bad = stage.bad("good", &[]).await;
    stage
        .beside(async {
            for (tool, says) in
                [("wrong-id", "right"), ("twice", "first"), ("early", "on time"), ("text-id", "a number"), ("pieces", "in pieces")]
            {
                let outcome = stage.call(&format!("bad_{tool}"), json!({})).await;
                assert_eq!(outcome.text(), says, "{tool}");
                let next = stage.call("bad_echo", json!({"after": tool})).await;
                assert_eq!(next.output().map(|output| &output.data), Some(&json!({"after": tool})));
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_questions_are_refused_or_dropped() {
    let stage = Stage::new();
    let _bad = stage.bad("good", &[]).await;
    stage
        .beside(async {
            let outcome = stage.call("bad_asks-some", json!({})).await;
            let heard = outcome.output().expect("a result").data["heard"].clone();
            let mut heard: Vec<String> = heard.as_array().expect("answers").iter().map(ToString::to_string).collect();
            heard.sort();
            assert_eq!(heard, ["-32601", "-32601", "-32601", "{}"]);
            for tool in ["bad_asks", "bad_pings", "bad_asks", "bad_echo"] {
                assert!(stage.call(tool, json!({})).await.is_success(), "{tool}");
            }
            // One of a thousand questions to a person is enough.
            let outcome = stage.call("bad_asks-people", json!({})).await;
            // Its answer, which does not wait for theirs, may be there first.
            assert!(["failed: the tool requests input: ?", "done"].contains(&&*outcome.text()), "{outcome:?}");
            // The rest of them name no call, and may come while the next one is the only one; when they are over, it goes well.
            for left in (0..1000).rev() {
                let outcome = stage.call("bad_echo", json!({})).await;
                if outcome.is_success() {
                    break;
                }
                assert!(left > 0 && outcome.text() == "failed: the tool requests input: ?", "{outcome:?}");
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_never_answered_ends_in_time_and_the_next_one_works() {
    let stage = Stage::new();
    let mut definition = server("bad", "good", &[]);
    definition["timeout"] = json!("300ms");
    let bad = stage.connect(definition);
    settle(&bad).await;
    stage
        .beside(async {
            let begun = Instant::now();
            let outcome = stage.call("bad_stuck", json!({})).await;
            assert!(outcome.text().starts_with("timeout: no result after 300ms"), "{}", outcome.text());
            assert!(begun.elapsed() < Duration::from_secs(20));
            assert!(stage.call("bad_echo", json!({})).await.is_success());
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_a_call_says_so_and_is_there_for_the_next() {
    let stage = Stage::new();
    stage
        .beside(async {
            for tool in ["bad_dies", "bad_half"] {
                // A server that dies twice within seconds is kept waiting, so each death is one of its own.
                let stage = Stage::new();
                let _bad = stage.bad("good", &[]).await;
                let outcome = stage.call(tool, json!({})).await;
                assert!(outcome.text().starts_with("interrupted: the server `bad`: connection to the server lost"), "{}", outcome.text());
                let next = stage.call("bad_echo", json!({})).await;
                assert!(next.is_success(), "{next:?}");
            }
        })
        .await;
}
