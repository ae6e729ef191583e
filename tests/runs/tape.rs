//! Recordings: what was recorded is replayed as it was, and nothing else is.

use helve_testkit::{Failure, Reply, Request, Script};
use serde_json::json;

use crate::scene::{KEY, Scene};

fn script() -> Script {
    Script::from_fn(|request: &Request| match request.results()[..] {
        [] => Reply::calls([("calculate", json!({"expression": "6 * 7"})), ("calculate", json!({"expresion": "1"}))])
            .with_text("Let me see. ")
            .with_reasoning("Numbers."),
        [_, _] => Reply::calls([("calculate", json!({"expression": "2^10"}))]),
        _ => Reply::text("It is 42 and 1024.").with_pieces_of(3),
    })
}

#[test]
fn a_recording_gives_the_same_events() {
    let scene = Scene::new(script());
    let recorded = scene.events(&["--record", &tape(&scene), "go"]);
    assert_eq!((recorded.code, recorded.calls().len()), (Some(0), 3), "{}", recorded.stderr);
    let text = std::fs::read_to_string(tape(&scene)).expect("a recording");
    assert!(!text.contains(KEY) && text.lines().count() == 3, "{text}");
    let asked = scene.server.requests().len();
    let replay = format!("replay:{}", tape(&scene));
    for _ in 0..2 {
        let replayed = scene.events(&["--model", &replay, "go"]);
        assert_eq!(replayed.code, Some(0), "{}", replayed.stderr);
        assert_eq!(replayed.story(), recorded.story());
        assert_eq!(replayed.pieces(), recorded.pieces());
    }
    assert_eq!(scene.server.requests().len(), asked, "nobody is asked");
    assert_eq!(scene.run(&["--model", &replay, "go"]).stdout, "It is 42 and 1024.\n");
}

fn tape(scene: &Scene) -> String {
    scene.project.state.path().join("tape.jsonl").to_string_lossy().into_owned()
}

#[test]
fn what_was_not_recorded_is_refused() {
    let scene = Scene::new(script());
    let file = tape(&scene);
    assert_eq!(scene.run(&["--record", &file, "go"]).code, Some(0));
    let replay = format!("replay:{file}");
    let ran = scene.events(&["--model", &replay, "something else"]);
    assert_eq!((ran.code, ran.end()), (Some(1), ("failed".into(), "recording".into())), "{}", ran.stderr);
    for part in ["has no response to this request", "something else", "--record"] {
        assert!(ran.stderr.contains(part), "{part} is missing: {}", ran.stderr);
    }
    // A tool that gives something else than it did leads off the tape, and that is said too.
    let denied = scene.with("agents/a.yaml", "name: a\ntools: [calculate]\npermissions: {calculate: deny}\n");
    let ran = denied.events(&["--model", &replay, "go"]);
    assert_eq!((ran.code, ran.end().1.as_str()), (Some(1), "recording"), "{}", ran.stderr);
    assert!(ran.stderr.contains("The tools may have returned other results"), "{}", ran.stderr);
}

#[test]
fn a_recording_that_cannot_be_used_is_said() {
    let scene = Scene::new(Script::from_fn(|_| Reply::text("Hi.")));
    let ran = scene.run(&["--model", "replay:/nowhere/at/all.jsonl", "go"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot read recording /nowhere/at/all.jsonl"), "{}", ran.stderr);
    scene.project.write("broken.jsonl", b"{\"model\": \"m\", \"asked\": [], \"said\": []}\nnonsense\n");
    let broken = scene.project.folder.path().join("broken.jsonl");
    let ran = scene.run(&["--model", &format!("replay:{}", broken.display()), "go"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("line 2 of recording"), "{}", ran.stderr);
    let ran = scene.run(&["--record", "/nowhere/at/all.jsonl", "go"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot write recording") && ran.stdout.is_empty(), "{}", ran.stderr);
}

/// An answer that broke off is not worth playing again.
#[test]
fn only_whole_answers_are_recorded() {
    let scene = Scene::new([Reply::text("The answer is forty-two.").cut_after(4), Reply::text("42"), Reply::failure(Failure::Auth)]);
    let file = tape(&scene);
    assert_eq!(scene.run(&["--record", &file, "go"]).stdout, "42\n");
    assert_eq!(scene.run(&["--record", &file, "go on"]).code, Some(1));
    let text = std::fs::read_to_string(&file).expect("a recording");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(scene.run(&["--model", &format!("replay:{file}"), "go"]).stdout, "42\n");
}
