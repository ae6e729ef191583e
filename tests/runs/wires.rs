//! The same conversation over all wires; what a pipe, a program and the shell get of it.

use std::time::Duration;

use helve_core::EndReason;
use helve_testkit::{Call, CallPieces, Reply, Request, Script, Turn};
use serde_json::{Value, json};

use crate::folder::{Project, echo, stderr};
use crate::scene::{KEY, NAP, Ran, Running, Scene, alone, dies, unmarked};

const PROVIDERS: [&str; 4] = ["openai_compatible", "openai_responses", "anthropic", "gemini"];

/// Three calls at once, one of them wrong; then the wrong one again; then an answer made of what the tools gave.
fn conversation(pieces: CallPieces) -> Script {
    Script::from_fn(move |request: &Request| {
        let results = results(request);
        match results.len() {
            0 => Reply::calls([
                Call::new("calculate", json!({"expression": "6 * 7"})),
                Call::new("calculate", json!({"expresion": "2^10"})),
                Call::new("get_date", json!({"timezone": "Nowhere/Atall"})),
            ])
            .with_text("Let me see. ")
            .with_call_pieces(pieces),
            3 => Reply::calls([("calculate", json!({"expression": "2^10"}))]).with_reasoning("I wrote it wrongly."),
            _ => Reply::text(format!("It is {} and {}, ünïcode included.", results[0], results[3])),
        }
    })
}

/// What a request says of results, in words. Gemini has an object for them.
fn results(request: &Request) -> Vec<String> {
    let words = |text: &&str| {
        let object: Value = serde_json::from_str(text).unwrap_or_default();
        unmarked(object["output"].as_str().or(object["error"].as_str()).unwrap_or(text))
    };
    request.results().iter().map(words).collect()
}

fn told(scene: &Scene) -> Vec<Vec<String>> {
    scene.server.requests().iter().map(results).collect()
}

#[test]
fn all_wires_tell_the_same_story() {
    let mut first: Option<(Vec<Value>, Vec<Vec<String>>)> = None;
    for (provider, pieces) in PROVIDERS.iter().zip([CallPieces::Interleaved, CallPieces::Split, CallPieces::Split, CallPieces::Together]) {
        let scene = Scene::of(provider, "", conversation(pieces));
        let ran = scene.events(&["What", "are 6 * 7 and 2^10?"]);
        assert_eq!(ran.code, Some(0), "{provider}: {}", ran.stderr);
        assert_eq!(ran.end(), ("answered".into(), "It is 42 and 1024, ünïcode included.".into()), "{provider}");
        assert_eq!(ran.pieces(), "Let me see. It is 42 and 1024, ünïcode included.", "{provider}");
        assert_eq!(ran.data("run_started")[0]["input"], "What are 6 * 7 and 2^10?");
        let calls = ran.calls();
        let kinds: Vec<&str> = calls.iter().map(|(_, _, came)| came.as_str()).collect();
        assert_eq!(kinds, ["42", "invalid_parameters", "invalid_parameters", "1024"], "{provider}");
        assert_eq!(calls[1].1, json!({"expresion": "2^10"}), "the arguments as the model gave them");
        assert_eq!(ran.data("model_requested").iter().map(|data| &data["strategy"]).collect::<Vec<_>>(), vec!["native"; 3], "{provider}");
        let usage = &ran.data("run_finished")[0]["usage"];
        assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(30), &json!(15)), "{provider}");
        for request in scene.server.requests() {
            assert!(request.streaming && request.tools.iter().any(|tool| tool == "calculate"), "{provider}: {request:?}");
            assert!(format!("{:?}", (&request.headers, &request.path)).contains(KEY), "the key goes with it: {provider}");
        }
        let told = told(&scene);
        assert_eq!(told[1].iter().map(|text| text.contains("42")).collect::<Vec<_>>(), [true, false, false], "in the order of the calls");
        assert!(told[1][1].contains("expresion") && told[1][1].contains("expression"), "the model can correct it: {}", told[1][1]);
        let story = ran.story();
        if let Some((expected, expected_told)) = &first {
            assert_eq!(expected, &story, "{provider}");
            assert_eq!(expected_told, &told, "{provider}");
        }
        first.get_or_insert((story, told));
    }
}

/// Results go back under the ids that their calls had, whatever the wire.
#[test]
fn results_are_bound_to_their_calls() {
    for provider in PROVIDERS {
        let scene = Scene::of(provider, "", conversation(CallPieces::Split));
        assert_eq!(scene.run(&["go"]).code, Some(0));
        let last = scene.server.requests().pop().expect("a request");
        let mut open: Vec<(String, String)> = Vec::new();
        for turn in &last.turns {
            match turn {
                Turn::Assistant { calls, .. } => {
                    open.extend(calls.iter().map(|call| (call.id.clone().unwrap_or_default(), call.name.clone())));
                }
                Turn::Result { id, tool, .. } => {
                    let (wanted, name) = open.remove(0);
                    assert_eq!((id, tool), (&wanted, &name), "{provider}");
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "{provider}: calls without a result {open:?}");
    }
}

#[test]
fn a_pipe_gets_only_the_answer() {
    let script = || [Reply::calls([("calculate", json!({"expression": "1 + 1"}))]).with_text("Wait."), Reply::text("**Two**, I think.")];
    let ran = Scene::new(script()).run(&["1 + 1?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "**Two**, I think.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("calculate"), "people see what runs: {}", ran.stderr);
    let scene = Scene::new(script());
    let ran = scene.start(&["-"], "1 + 1\nby stdin").finish();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "**Two**, I think.\n"), "{}", ran.stderr);
    assert_eq!(scene.server.requests()[0].user(), "1 + 1\nby stdin");
    let nothing = Scene::new(script()).start(&["-"], " \n").finish();
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(2), ""));
    assert!(nothing.stderr.contains("the prompt is empty") && nothing.stderr.contains("hint:"), "{}", nothing.stderr);
}

/// A tool that ends the run: its words are the answer, or else what was said so far. The model is not asked again.
#[test]
fn a_tool_may_have_the_last_word() {
    for (arguments, answer) in [(json!({"text": "Good night."}), "Good night."), (json!({}), "That was all.")] {
        let calls = || Reply::calls([("stop_response", arguments.clone())]).with_text("That was all.");
        let scene = Scene::new([calls(), calls()]);
        let ran = scene.events(&["bye"]);
        assert_eq!((ran.code, ran.end()), (Some(0), ("stopped".into(), answer.into())), "{}", ran.stderr);
        assert_eq!((scene.run(&["bye"]).stdout, scene.server.requests().len()), (format!("{answer}\n"), 2));
    }
}

/// `helve run … | true`: nobody reads the answer, and that is no reason to panic.
#[test]
fn a_reader_who_left_is_no_error() {
    for arguments in [&["run", "go"][..], &["run", "--json", "go"]] {
        let scene = Scene::new(Script::from_fn(|_| Reply::text("word ".repeat(20_000)).with_pieces_of(2000)));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ran = scene.command(arguments).stdout(writer).output().expect("helve runs");
        assert!(ran.status.code() == Some(0) && !stderr(&ran).contains("panicked"), "{}", stderr(&ran));
    }
}

/// A confirmed tool, called beside one that needs no confirmation.
fn careful() -> Scene {
    let script = Script::from_fn(|request: &Request| match request.results()[..] {
        [] => Reply::calls([("say", json!({"text": "hello"})), ("calculate", json!({"expression": "40 + 2"}))]),
        [first, second] => Reply::text(format!("{} {}", if first.contains("hello") { "said" } else { first }, unmarked(second))),
        _ => Reply::text("?"),
    });
    Scene::new(script).with("tools/builtin/say.yaml", &format!("{}permission: confirm\n", echo("say")))
}

#[test]
fn a_call_that_must_be_confirmed_waits_is_made_or_is_not() {
    let scene = careful();
    let waiting = scene.events(&["--approve", "ask", "say it"]);
    assert_eq!((waiting.code, waiting.end().0.as_str()), (Some(3), "run_waiting"), "{}", waiting.stderr);
    let asked = waiting.data("permission_request")[0].clone();
    assert_eq!((&asked["tool"], &asked["arguments"]), (&json!("say"), &json!({"text": "hello"})));
    assert!(asked["digest"].is_string() && asked["approval_id"].is_string() && asked["reason"].is_string(), "{asked}");
    assert_eq!(waiting.data("run_waiting")[0]["approvals"], json!([asked["approval_id"]]));
    assert_eq!(waiting.calls()[1].2, "42", "the other call is made");
    assert!(waiting.stderr.contains("say needs approval") && waiting.stderr.contains("helve runs resume run_"), "{}", waiting.stderr);
    assert_eq!(scene.server.requests().len(), 1);

    let approved = careful().events(&["--approve", "yes", "say it"]);
    assert_eq!((approved.code, approved.end().1.as_str()), (Some(0), "said 42"), "{}", approved.stderr);
    assert_eq!(approved.data("permission_result")[0]["decision"], "approve");

    let denied = careful().events(&["--approve", "no", "say it"]);
    assert_eq!(denied.code, Some(0), "the model is told, and goes on");
    assert_eq!((denied.calls()[0].2.as_str(), denied.calls()[1].2.as_str()), ("permission_denied", "42"));
    assert!(denied.end().1.contains("permission_denied"), "{:?}", denied.end());
    let people = careful().run(&["say it"]);
    assert_eq!((people.code, people.stdout.as_str()), (Some(3), ""), "{}", people.stderr);
}

/// Ctrl-C while the model speaks, while it is silent, and while a tool works.
#[test]
fn an_interrupted_run_ends_at_once_and_in_good_order() {
    let slow = || Reply::text("one two three four").with_pause(Duration::from_millis(150));
    let cases: [(Reply, &str); 3] =
        [(slow(), "text_delta"), (Reply::silence(), "model_requested"), (Reply::calls([("nap", json!({}))]), "\"tool_start\"")];
    for (reply, until) in cases {
        let scene = Scene::new(reply).with(NAP.0, NAP.1);
        let mut running = scene.start(&["--json", "--approve", "yes", "go"], "");
        running.wait_for(until);
        let nap = until.contains("tool_start").then(|| scene.nap());
        running.interrupt();
        let mut ran = running.finish();
        ran.read_events();
        assert_eq!((ran.code, ran.end().0.as_str()), (Some(130), "cancelled"), "{until}: {}", ran.stderr);
        assert!(ran.took < Duration::from_secs(5), "{until}: {:?}", ran.took);
        assert!(ran.calls().iter().all(|(_, _, came)| came == "cancelled"), "{:?}", ran.calls());
        assert!(nap.is_none_or(|nap| dies(&nap)), "what the tool started");
    }
}

#[test]
fn without_a_model_the_ways_to_go_on_are_said() {
    let project = Project::new(&[]);
    for arguments in [&["run", "hi"][..], &["run", "--json", "hi"]] {
        let ran = Running::start(&mut alone(project.command(arguments), &project), "").finish();
        if ran.code == Some(0) {
            // A server of a model runs on this machine, at a port where they do.
            continue;
        }
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        for way in ["no model is configured", "OPENROUTER_API_KEY", "Ollama", "helve.yaml", "--model"] {
            assert!(ran.stderr.contains(way), "{way} is missing: {}", ran.stderr);
        }
        if arguments.contains(&"--json") {
            let error: Value = serde_json::from_str(&ran.stdout).expect("JSON");
            assert_eq!(error["error"]["kind"], "no_model");
        }
    }
    let unknown = Scene::new([]).run(&["--model", "hose", "hi"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no model `hose`") && unknown.stderr.contains("did you mean `house`?"), "{}", unknown.stderr);
    let keyless = Scene::new([]).run(&["--model", "openrouter/some-model", "hi"]);
    assert!(keyless.code == Some(1) && keyless.stderr.contains("OPENROUTER_API_KEY"), "{}", keyless.stderr);
}

/// Nothing off this machine is asked for its address, and none is connected to.
#[test]
fn local_means_local() {
    let scene = Scene::new(Reply::text("Here."));
    assert_eq!(scene.run(&["--local", "hi"]).stdout, "Here.\n", "this machine may be reached");
    for model in ["http://192.0.2.1:9/v1#big", "http://192.0.2.1:9/v1"] {
        let ran = scene.run(&["--local", "--model", model, "hi"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("is not on this machine") && ran.took < Duration::from_secs(5), "{model}: {}", ran.stderr);
    }
}

/// The end that a provider says does not matter where calls came, and a long answer that was cut off is still an answer.
#[test]
fn an_answer_that_was_cut_off_by_length_is_given_as_it_is() {
    let ran: Ran = Scene::new(Reply::text("Once upon").with_end(EndReason::Length)).events(&["tell"]);
    assert_eq!((ran.code, ran.end()), (Some(0), ("answered".into(), "Once upon".into())));
    assert_eq!(ran.data("model_responded")[0]["end"], "length");
    let calls = Reply::calls([("calculate", json!({"expression": "2 + 2"}))]).with_end(EndReason::Stop);
    let ran = Scene::new([calls, Reply::text("4")]).events(&["2 + 2"]);
    assert_eq!((ran.end().1.as_str(), ran.calls().len()), ("4", 1));
}
