//! What goes wrong on purpose.

use std::time::Duration;

use helve_testkit::{Failure, ModelServer, Reply};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout};

use crate::client::{WIRES, ask, ask_with, open, post, question, stream};

async fn refused(wire: &str, failure: Failure) -> (u16, Value) {
    let streamed = stream(wire, Reply::failure(failure.clone())).await;
    let whole = ask(wire, false, Reply::failure(failure)).await;
    assert!(whole.head.contains("content-type: application/json"), "{}", whole.head);
    assert_eq!((streamed.status, streamed.json()), (whole.status, whole.json()));
    (whole.status, whole.json())
}

#[tokio::test]
async fn failures_have_the_status_and_the_shape_of_their_provider() {
    let failures = [
        (Failure::Auth, [401, 401, 400]),
        (Failure::Quota, [429, 402, 429]),
        (Failure::Rate, [429, 429, 429]),
        (Failure::ContextLength, [400, 400, 400]),
        (Failure::ToolsUnsupported, [400, 400, 400]),
        (Failure::UnknownModel, [404, 404, 404]),
        (Failure::Internal, [500, 500, 500]),
        (Failure::Overloaded, [503, 529, 503]),
        (Failure::other(418, "teapot", "I am a teapot."), [418, 418, 418]),
    ];
    for (failure, [openai, anthropic, gemini]) in failures {
        for wire in ["chat", "responses"] {
            let (status, body) = refused(wire, failure.clone()).await;
            assert_eq!(status, openai, "{failure:?}");
            assert!(body["error"]["message"].is_string() && body["error"]["type"].is_string() && body["error"].get("code").is_some());
        }
        let (status, body) = refused("anthropic", failure.clone()).await;
        assert_eq!((status, &body["type"]), (anthropic, &json!("error")), "{failure:?}");
        assert!(body["error"]["message"].is_string() && body["error"]["type"].is_string());
        let (status, body) = refused("gemini", failure.clone()).await;
        assert_eq!((status, &body["error"]["code"]), (gemini, &json!(gemini)), "{failure:?}");
        assert!(body["error"]["message"].is_string() && body["error"]["status"].is_string());
    }
    assert_eq!(refused("chat", Failure::Quota).await.1["error"]["code"], "insufficient_quota");
    assert_eq!(refused("chat", Failure::ContextLength).await.1["error"]["code"], "context_length_exceeded");
    assert_eq!(refused("anthropic", Failure::Overloaded).await.1["error"]["type"], "overloaded_error");
    assert_eq!(refused("gemini", Failure::Auth).await.1["error"]["details"][0]["reason"], "API_KEY_INVALID");
    assert_eq!(refused("gemini", Failure::Filter).await.1["promptFeedback"]["blockReason"], "PROHIBITED_CONTENT");
}

#[tokio::test]
async fn headers_and_status_are_added() {
    let reply = Reply::failure(Failure::Quota).with_status(402).with_header("Retry-After", "7").with_header("Content-Type", "text/plain");
    let got = ask("chat", false, reply).await;
    assert_eq!(got.status, 402);
    assert!(got.head.contains("retry-after: 7") && got.head.contains("content-type: text/plain"), "{}", got.head);
    assert!(!got.head.contains("application/json"));
    let wrong = ask("chat", false, Reply::text("a").with_header("no good", "x")).await;
    assert_eq!(wrong.status, 500);
    assert!(wrong.text().contains("header"), "{}", wrong.text());
}

#[tokio::test]
async fn an_error_stands_inside_a_stream_that_began_well() {
    for wire in WIRES {
        let got = stream(wire, Reply::text("Hello, world").fail_after(3, Failure::Overloaded)).await;
        assert_eq!((got.status, got.complete), (200, true), "{wire}");
        let events = got.events();
        let (name, error) = &events[3];
        match wire {
            "chat" => assert_eq!((name.as_str(), &error["error"]["code"], events.len()), ("", &json!("overloaded"), 4)),
            "gemini" => assert_eq!((name.as_str(), &error["error"]["status"], events.len()), ("", &json!("UNAVAILABLE"), 4)),
            "anthropic" => assert_eq!((name.as_str(), &error["error"]["type"], events.len()), ("error", &json!("overloaded_error"), 4)),
            _ => {
                assert_eq!((name.as_str(), &error["error"]["code"], &error["sequence_number"]), ("error", &json!("overloaded"), &json!(3)));
                let (name, failed) = &events[4];
                assert_eq!((name.as_str(), &failed["response"]["status"]), ("response.failed", &json!("failed")));
                assert_eq!((&failed["response"]["error"]["code"], &failed["sequence_number"]), (&json!("overloaded"), &json!(4)));
            }
        }
        let whole = ask(wire, false, Reply::text("Hello").fail_after(0, Failure::Overloaded)).await;
        assert_eq!(whole.status, 200);
        assert!(whole.json()["error"].is_object(), "{wire}");
    }
}

#[tokio::test]
async fn connections_are_cut_in_the_middle() {
    for wire in WIRES {
        let got = stream(wire, Reply::text("Hello, world").cut_after(2)).await;
        let text = got.text();
        assert_eq!((got.status, got.complete, text.matches("\n\n").count()), (200, false, 2), "{wire}: {text}");
        assert!(!text.ends_with('\n') && !text.contains("[DONE]"), "half of the third event: {text}");
        let whole = ask(wire, false, Reply::text("Hello").cut_after(0)).await;
        assert!(!whole.complete && serde_json::from_slice::<Value>(&whole.bytes()).is_err() && !whole.bytes().is_empty(), "{wire}");
    }
    let beyond = stream("chat", Reply::text("a").cut_after(100)).await;
    assert!(!beyond.complete && beyond.text().ends_with("[DONE]\n\n"));
}

#[tokio::test]
async fn streams_end_early_and_cleanly() {
    for wire in WIRES {
        let got = stream(wire, Reply::text("Hello, world").stop_after(2)).await;
        assert_eq!((got.complete, got.events().len()), (true, 2), "{wire}");
    }
}

#[tokio::test]
async fn lines_are_written_in_ugly_ways() {
    for wire in WIRES {
        let plain = stream(wire, Reply::text("Hello")).await.events();
        let got = stream(wire, Reply::text("Hello").with_crlf().with_comments().without_spaces()).await;
        let text = got.text();
        assert!(
            text.starts_with(":keep-alive\r\n\r\n") && text.contains("\r\ndata:{") && !text.replace("\r\n", "").contains('\n'),
            "{text}"
        );
        assert_eq!(got.events(), plain);
    }
}

#[tokio::test]
async fn bytes_are_sent_wherever_they_are_cut() {
    let got = stream("chat", Reply::text("☃☃").in_chunks_of(1)).await;
    assert!(got.complete && got.chunks.iter().all(|chunk| chunk.len() == 1));
    assert_eq!(got.data()[1]["choices"][0]["delta"]["content"], "☃☃");
    let joined = stream("chat", Reply::text("Hello").in_chunks_of(1 << 20)).await;
    assert_eq!(joined.chunks.len(), 1);
}

#[tokio::test]
async fn what_is_no_answer_is_sent_as_it_is() {
    let html = ask("chat", false, Reply::html(502)).await;
    assert_eq!(html.status, 502);
    assert!(html.head.contains("text/html") && html.text().contains("<html>"));
    let garbage = stream("anthropic", Reply::garbage()).await;
    assert!(garbage.head.contains("text/event-stream") && String::from_utf8(garbage.bytes()).is_err());
    let raw = stream("gemini", Reply::raw(207, "text/odd", ["ab", "c"])).await;
    assert_eq!((raw.status, raw.chunks), (207, vec![b"ab".to_vec(), b"c".to_vec()]));
    let cut = stream("gemini", Reply::raw(200, "text/odd", ["ab", "cd"]).cut_after(1)).await;
    assert_eq!((cut.complete, cut.text().as_str()), (false, "abc"));
    let events = stream("responses", Reply::events([("error", json!({"type": "error", "message": "no"})), ("", json!(1))])).await.events();
    assert_eq!(events, [("error".to_owned(), json!({"type": "error", "message": "no"})), (String::new(), json!(1))]);
    for size in [6, 1000, 65_536, 1_000_000] {
        let text = stream("chat", Reply::long_line(size)).await.text();
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [size, 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn replies_come_late_and_slowly() {
    let start = Instant::now();
    ask("chat", false, Reply::text("a").after(Duration::from_secs(7))).await;
    assert_eq!(start.elapsed().as_secs(), 7);
    let start = Instant::now();
    let got = ask("chat", false, Reply::raw(200, "text/plain", ["12345"]).in_chunks_of(1).with_pause(Duration::from_secs(1))).await;
    assert_eq!((start.elapsed().as_secs(), got.text().as_str()), (4, "12345"));
}

#[tokio::test(start_paused = true)]
async fn silence_lasts() {
    let server = ModelServer::start([Reply::silence(), Reply::text("hi")]).await;
    let (path, body) = question("chat", false);
    let mut connection = open(&server, "POST", &path, "", &body.to_string()).await;
    let waited = timeout(Duration::from_hours(1), connection.read_u8()).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(post(&server, &path, &body).await.status, 200, "others are served meanwhile");
}

#[tokio::test]
async fn after_the_end_of_the_script_there_is_an_error() {
    let got = ask_with(helve_testkit::Script::new(), "/v1/messages", &json!({})).await;
    assert_eq!((got.status, &got.json()["error"]["message"]), (500, &json!("the script has no more replies")));
}
