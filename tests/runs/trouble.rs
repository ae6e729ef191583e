//! Models that behave badly: a run ends with a reason or goes on, never hangs, and runs no call that was not made.

use std::time::Duration;

use helve_core::EndReason;
use helve_testkit::{Call, Failure, Reply, Request, Script, Turn};
use serde_json::json;

use crate::scene::{KEY, Scene};

fn sum(a: i64, b: i64) -> (&'static str, serde_json::Value) {
    ("calculate", json!({"expression": format!("{a} + {b}")}))
}

#[test]
fn a_model_that_repeats_itself_is_told_and_then_stopped() {
    let scene = Scene::new(Script::from_fn(|_| Reply::calls([sum(1, 1)])));
    let ran = scene.events(&["loop"]);
    assert_eq!((ran.code, ran.end().0.as_str()), (Some(1), "repeated_calls"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the model repeated the same call with the same result (same_calls)") && ran.stderr.contains("hint:"),
        "{}",
        ran.stderr
    );
    assert!(scene.server.requests().len() <= 5, "it is stopped soon");
    assert!(scene.told().iter().any(|text| text.contains("Do not repeat it")), "{:?}", scene.told());
    let learns = Script::from_fn(|request: &Request| match request.results().last() {
        Some(last) if last.contains("Do not repeat it") => Reply::text("Two, then."),
        _ => Reply::calls([sum(1, 1)]),
    });
    assert_eq!(Scene::new(learns).run(&["loop"]).stdout, "Two, then.\n");
}

#[test]
fn unknown_tools_are_told_and_the_run_goes_on() {
    let calls = Reply::calls([("calculat", json!({"expression": "1"})), ("rm -rf /", json!({})), sum(2, 3)]);
    let scene = Scene::new([calls, Reply::text("5")]);
    let ran = scene.events(&["go"]);
    assert_eq!((ran.code, ran.end().1.as_str()), (Some(0), "5"), "{}", ran.stderr);
    let came: Vec<String> = ran.calls().into_iter().map(|(_, _, came)| came).collect();
    assert_eq!(came, ["unknown_tool", "unknown_tool", "5"]);
    assert!(scene.told()[0].contains("calculate"), "the model is told what there is: {}", scene.told()[0]);
}

#[test]
fn words_without_sense_are_an_answer() {
    for words in ["{\"tool_calls\": ", "\u{0}\u{7}<tool_cal", "}}}]]]", "<|im_start|>", "NaN"] {
        let ran = Scene::new(Script::from_fn(move |_| Reply::text(words))).events(&["go"]);
        assert!(matches!(ran.end().0.as_str(), "answered" | "failed"), "{words:?}: {:?}", ran.end());
        assert_eq!(ran.code == Some(0), ran.end().0 == "answered", "{words:?}: {}", ran.stderr);
        assert!(ran.calls().is_empty(), "{words:?}");
    }
    let ran = Scene::new(Reply::text("\u{1b}[2J\u{1b}]0;title\u{7}blue cheese 蓝")).run(&["go"]);
    assert!(ran.code == Some(0) && !ran.stdout.contains('\u{1b}') && ran.stdout.contains("blue cheese 蓝"), "{:?}", ran.stdout);
}

/// Half a call is never made: neither where the connection died, nor where the model had no room left.
#[test]
fn half_a_call_is_never_made() {
    let half = || Reply::calls([Call::raw("calculate", "{\"expression\": \"1 + 1")]);
    let scene = Scene::new([half().with_end(EndReason::Length), Reply::text("Sorry.")]);
    let ran = scene.events(&["go"]);
    assert_eq!((ran.code, ran.end().1.as_str()), (Some(0), "Sorry."), "{}", ran.stderr);
    assert!(ran.calls().is_empty(), "{:?}", ran.calls());
    assert!(scene.server.requests()[1].user().contains("could not be read"), "{:?}", scene.server.requests()[1].user());
    for provider in ["openai_compatible", "openai_responses", "anthropic"] {
        // Within the pieces of the arguments, which come in fours.
        let dies = || Reply::calls([("calculate", json!({"expression": "1000000 + 1000000"}))]).cut_after(7);
        let scene = Scene::of(provider, "", Script::from_fn(move |_| dies()));
        let ran = scene.events(&["go"]);
        assert_eq!((ran.code, ran.end()), (Some(1), ("failed".into(), "network".into())), "{provider}: {}", ran.stderr);
        assert!(ran.calls().is_empty(), "{provider}: {:?}", ran.calls());
        assert!(ran.stderr.contains("closed the connection before the response was complete"), "{provider}: {}", ran.stderr);
    }
}

#[test]
fn a_stream_that_dies_is_asked_for_once_more() {
    for provider in ["openai_compatible", "openai_responses", "anthropic", "gemini"] {
        let dies = || Reply::text("The answer is forty-two.").cut_after(4);
        let scene = Scene::of(provider, "", [dies(), Reply::text("It is 42.")]);
        let ran = scene.events(&["go"]);
        assert_eq!((ran.code, ran.end()), (Some(0), ("answered".into(), "It is 42.".into())), "{provider}: {}", ran.stderr);
        assert_eq!(ran.data("notification").len(), 1, "{provider}: it is said");
        let scene = Scene::of(provider, "", Script::from_fn(move |_| dies()));
        let ran = scene.events(&["go"]);
        assert_eq!((ran.code, ran.end().1.as_str(), scene.server.requests().len()), (Some(1), "network", 2), "{provider}: {}", ran.stderr);
    }
    // Nothing came yet, or only half a call: nothing was done that could be done twice.
    for events in [1, 6] {
        let dies = Reply::calls([("calculate", json!({"expression": "1000000 + 1000000"}))]).cut_after(events);
        let ran = Scene::new([dies, Reply::text("It is 42.")]).events(&["go"]);
        assert_eq!((ran.code, ran.end().1.as_str()), (Some(0), "It is 42."), "after {events} events: {}", ran.stderr);
    }
}

/// A call that was made is recorded, and not made again because the stream broke behind it.
#[test]
fn a_stream_that_dies_behind_a_call_repeats_nothing() {
    let calls = Reply::calls([sum(1, 1), ("calculate", json!({"expression": "1000000 + 1000000"}))]).with_pause(Duration::from_millis(20));
    let scene = Scene::new([calls.cut_after(12), Reply::text("no")]);
    let ran = scene.events(&["go"]);
    assert_eq!((ran.code, ran.end()), (Some(1), ("failed".into(), "network".into())), "{}", ran.stderr);
    assert_eq!((ran.calls().len(), scene.server.requests().len()), (1, 1), "{:?}", ran.calls());
}

#[test]
fn ids_that_repeat_keep_results_apart() {
    for provider in ["openai_compatible", "openai_responses", "anthropic"] {
        let call = |a, b| {
            let (name, arguments) = sum(a, b);
            Call::new(name, arguments).with_id("call_0")
        };
        let scene = Scene::of(
            provider,
            "",
            [
                Reply::calls([call(1, 1), call(2, 2)]),
                Reply::calls([call(3, 3)]),
                Reply::calls([call(4, 4)]).without_ids(),
                Reply::text("done"),
            ],
        );
        let ran = scene.events(&["go"]);
        assert_eq!((ran.code, ran.end().1.as_str()), (Some(0), "done"), "{provider}: {}", ran.stderr);
        assert_eq!(scene.told(), ["2", "4", "6", "8"], "{provider}");
        let last = scene.server.requests().pop().expect("a request");
        let mut ids: Vec<&str> =
            last.turns.iter().filter_map(|turn| if let Turn::Result { id, .. } = turn { Some(&**id) } else { None }).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4, "{provider}: {ids:?}");
    }
}

#[test]
fn a_byte_a_second_meets_the_time_limit() {
    let slow = Reply::text("This will take for ever.").in_chunks_of(1).with_pause(Duration::from_secs(1));
    let scene = Scene::new(slow).with("agents/a.yaml", "name: a\nlimits: {timeout: 1500ms}\n");
    let ran = scene.events(&["go"]);
    assert_eq!((ran.code, ran.end().0.as_str()), (Some(1), "time_budget"), "{}", ran.stderr);
    assert!(ran.stderr.contains("time limit reached (timeout)") && ran.stderr.contains("limits"), "{}", ran.stderr);
    assert!(ran.took < Duration::from_secs(6), "{:?}", ran.took);
}

#[test]
fn silence_is_waited_for_only_so_long() {
    let scene = Scene::of("openai_compatible", "timeouts: {first_byte: 300ms}", Reply::silence());
    let ran = scene.events(&["go"]);
    assert_eq!((ran.code, ran.end().1.as_str()), (Some(1), "model_timeout"), "{}", ran.stderr);
    assert!(ran.stderr.contains("timed out after 300ms") && ran.stderr.contains("timeouts"), "{}", ran.stderr);
    assert_eq!(scene.server.requests().len(), 1, "asking again would take as long");
    let stalls = || Reply::text("This will take for ever.").with_pieces_of(10).with_pause(Duration::from_mins(1));
    let scene = Scene::of("openai_compatible", "timeouts: {idle: 300ms}", Script::from_fn(move |_| stalls()));
    let ran = scene.events(&["go"]);
    assert_eq!((ran.code, ran.end().1.as_str()), (Some(1), "model_timeout"), "{}", ran.stderr);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
}

#[test]
fn an_error_inside_a_stream_is_an_error() {
    for provider in ["openai_compatible", "openai_responses", "anthropic", "gemini"] {
        for (events, failure, kind) in
            [(0, Failure::Auth, "auth"), (3, Failure::Quota, "quota"), (3, Failure::ContextLength, "context_length")]
        {
            let scene = Scene::of(provider, "", Reply::text("The answer is").fail_after(events, failure));
            let ran = scene.events(&["go"]);
            assert_eq!((ran.code, ran.end().1.as_str()), (Some(1), kind), "{provider} after {events}: {}", ran.stderr);
            assert!(ran.stderr.contains("error:") && ran.stderr.contains("hint:"), "{provider}: {}", ran.stderr);
        }
        for events in [0, 3] {
            let scene = Scene::of(provider, "", [Reply::text("The answer is").fail_after(events, Failure::Overloaded), Reply::text("42")]);
            let ran = scene.events(&["go"]);
            assert_eq!((ran.code, ran.end().1.as_str()), (Some(0), "42"), "{provider} after {events}: {}", ran.stderr);
        }
    }
}

#[test]
fn an_empty_answer_is_asked_for_once_more() {
    let scene = Scene::new([Reply::text(""), Reply::text("Here I am.")]);
    let ran = scene.events(&["go"]);
    assert_eq!((ran.code, ran.end().1.as_str()), (Some(0), "Here I am."), "{}", ran.stderr);
    assert!(scene.server.requests()[1].user().contains("You said nothing"), "{:?}", scene.server.requests()[1].turns);
    let scene = Scene::new(Script::from_fn(|_| Reply::text(" \n")));
    let ran = scene.events(&["go"]);
    assert_eq!(scene.server.requests().len(), 2, "once");
    assert_eq!((ran.code, ran.end().0.as_str()), (Some(0), "answered"), "{}", ran.stderr);
}

/// What is no answer at all: bytes, pages, endless lines.
#[test]
fn nonsense_on_the_wire_is_said_to_be_nonsense() {
    let event_stream = |text: &str| Reply::raw(200, "text/event-stream", [text.as_bytes().to_vec()]);
    let cases: [(&str, Reply, &[&str]); 7] = [
        ("garbage", Reply::garbage(), &["protocol", "network"]),
        ("a page", Reply::html(200), &["protocol"]),
        ("other JSON", Reply::raw(200, "application/json", ["{\"hello\": \"world\"}"]), &["protocol"]),
        ("events of another kind", event_stream("data: [1, 2]\n\n"), &["protocol"]),
        ("nothing", event_stream(""), &["network"]),
        ("an empty body", Reply::raw(200, "application/json", [""]), &["protocol"]),
        ("a huge line", Reply::long_line(17 << 20), &["protocol"]),
    ];
    for (name, reply, kinds) in cases {
        let scene = Scene::new(Script::from_fn(move |_| reply.clone()));
        let ran = scene.events(&["go"]);
        let (end, kind) = ran.end();
        assert!(ran.code == Some(1) && end == "failed" && kinds.contains(&kind.as_str()), "{name}: {kind}: {}", ran.stderr);
        assert!(ran.stderr.contains("error:") && ran.stderr.contains("hint:") && ran.stderr.len() < 20_000, "{name}: {}", ran.stderr);
        assert!(!ran.stderr.contains("<html>\n"), "{name}: shown on one line");
    }
}

/// Some proxies keep the connection open after the last word. Whoever waited for its end would run into the guard.
#[test]
fn an_answer_is_over_when_its_provider_says_so() {
    let words = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi.\"}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
    let held = Reply::raw(200, "text/event-stream", [words, ": still here\n\n"]).with_pause(Duration::from_mins(1));
    let ran = Scene::new(held).events(&["go"]);
    assert_eq!((ran.code, ran.end()), (Some(0), ("answered".into(), "Hi.".into())), "{}", ran.stderr);
}

/// A secret that comes in pieces is a secret all the same.
#[test]
fn a_key_that_a_model_repeats_is_not_shown_in_pieces() {
    let reply = Reply::text(format!("The key is {KEY}, as far as I know.")).with_pieces_of(4);
    let ran = Scene::new(Script::from_fn(move |_| reply.clone())).events(&["go"]);
    let said: String =
        ran.events.iter().filter(|event| event["type"] == "text_delta").filter_map(|event| event["data"]["text"].as_str()).collect();
    assert_eq!(said, "The key is [REDACTED], as far as I know.");
}
