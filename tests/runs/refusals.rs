//! Providers that refuse: what a person is told, and what is tried again.

use std::time::Duration;

use helve_testkit::{Failure, Reply, Request, Script};
use serde_json::json;

use crate::scene::{KEY, Running, Scene};

const PROVIDERS: [&str; 4] = ["openai_compatible", "openai_responses", "anthropic", "gemini"];

/// What asking again does not help is not asked again.
#[test]
fn refusals_are_said_with_what_to_do() {
    let unpaid = Failure::other(402, "payment_required", "Insufficient credits.");
    let cases: [(Failure, &str, &str, &str); 6] = [
        (unpaid, "quota", "no credit or quota left", "add credit"),
        (Failure::Auth, "auth", "rejected the API key", "check the provider's key"),
        (Failure::Quota, "quota", "no credit or quota left", "add credit"),
        (Failure::ContextLength, "context_length", "exceeds the model's context window", "start a new conversation"),
        (Failure::UnknownModel, "model_not_found", "no such model", "helve models"),
        (Failure::Filter, "filter", "refused the content", "rephrase the input"),
    ];
    for (failure, kind, message, hint) in cases {
        for provider in PROVIDERS {
            let scene = Scene::of(provider, "", Reply::failure(failure.clone()));
            let ran = scene.events(&["go"]);
            assert_eq!((ran.code, ran.end()), (Some(1), ("failed".into(), kind.into())), "{provider} {failure:?}: {}", ran.stderr);
            let error = &ran.data("run_failed")[0]["error"];
            assert!(error["message"].as_str().is_some_and(|said| said.contains(message)), "{provider}: {error}");
            assert!(error["hint"].as_str().is_some_and(|said| said.contains(hint)), "{provider}: {error}");
            assert!(ran.stderr.contains(message) && ran.stderr.contains(hint), "{provider} {failure:?}: {}", ran.stderr);
            assert_eq!(scene.server.requests().len(), 1, "{provider} {failure:?}");
        }
    }
}

/// Providers repeat what they were sent. `Scene` looks for the key in all that is printed.
#[test]
fn a_key_that_the_provider_repeats_is_not_shown() {
    let said = Reply::failure(Failure::other(401, "invalid_api_key", format!("Incorrect API key provided: {KEY}.")));
    let page = Reply::raw(403, "text/html", [format!("<p>Authorization: Bearer {KEY}</p>")]);
    let whole = Reply::raw(200, "application/json", [format!("{{\"error\": {{\"message\": \"{KEY} is unknown\", \"code\": 401}}}}")]);
    for reply in [said, page, whole] {
        let scene = Scene::new(Script::from_fn(move |_| reply.clone()));
        for arguments in [&["-vv", "go"][..], &["go"], &["-vvv", "--json", "go"]] {
            let ran = scene.run(arguments);
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        }
        assert!(format!("{:?}", scene.server.requests()[0].headers).contains(KEY), "it was sent");
    }
    // The same where it comes from the environment under a name that says nothing.
    let scene = Scene::new(Reply::failure(Failure::other(401, "invalid_api_key", format!("{KEY} is unknown"))));
    let config = std::fs::read_to_string(scene.project.folder.path().join("helve.yaml")).expect("a file");
    let scene = scene.with("helve.yaml", &config.replace(KEY, "${HOUSE}"));
    let ran = Running::start(scene.command(&["run", "-vv", "go"]).env("HOUSE", KEY), "").finish();
    assert!(ran.code == Some(1) && ran.stderr.contains("is unknown"), "{}", ran.stderr);
    assert_eq!(scene.server.requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    // A tool that gives it back, and a model that says it.
    let script = [Reply::calls([("calculate", json!({"expression": format!("\"{KEY}\"")}))]), Reply::text(format!("It is {KEY}."))];
    let ran = Scene::new(script).run(&["-vv", "go"]);
    assert!(ran.code == Some(0) && ran.stdout.starts_with("It is "), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn what_passes_is_tried_again() {
    for provider in PROVIDERS {
        let busy = Reply::failure(Failure::Rate).with_header("retry-after", "1");
        let scene = Scene::of(provider, "", [busy, Reply::text("Now.")]);
        let ran = scene.events(&["go"]);
        assert_eq!((ran.code, ran.end().1.as_str(), scene.server.requests().len()), (Some(0), "Now.", 2), "{provider}: {}", ran.stderr);
        assert!(ran.took >= Duration::from_secs(1) && ran.took < Duration::from_secs(10), "{provider}: {:?}", ran.took);
    }
    for (name, reply) in
        [("500", Reply::failure(Failure::Internal)), ("503", Reply::failure(Failure::Overloaded)), ("502", Reply::html(502))]
    {
        let scene = Scene::new([reply, Reply::text("Now.")]);
        let ran = scene.run(&["go"]);
        assert_eq!((ran.code, ran.stdout.as_str(), scene.server.requests().len()), (Some(0), "Now.\n", 2), "{name}: {}", ran.stderr);
    }
}

/// A wait of an hour is told to the person instead of being waited for; a server that stays broken is given up.
#[test]
fn nobody_waits_for_ever() {
    let busy = Reply::failure(Failure::Rate).with_header("retry-after", "3600");
    let scene = Scene::new(Script::from_fn(move |_| busy.clone()));
    let ran = scene.events(&["go"]);
    assert_eq!((ran.code, ran.end().1.as_str(), scene.server.requests().len()), (Some(1), "overloaded", 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("try again later"), "{}", ran.stderr);
    let busy = Reply::failure(Failure::Overloaded).with_header("retry-after", "0");
    let scene = Scene::new(Script::from_fn(move |_| busy.clone()));
    let ran = scene.events(&["go"]);
    assert_eq!((ran.code, ran.end().1.as_str(), scene.server.requests().len()), (Some(1), "overloaded", 4), "{}", ran.stderr);
    let nobody = Scene::new([]).with(
        "helve.yaml",
        "model: house\nmodels: {house: {provider: openai_compatible, base_url: \"http://127.0.0.1:9/v1\", model: big}}\n",
    );
    let ran = nobody.events(&["go"]);
    assert_eq!((ran.code, ran.end().1.as_str()), (Some(1), "network"), "{}", ran.stderr);
    assert!(ran.stderr.contains("127.0.0.1:9") && ran.stderr.contains("check that the server is running"), "{}", ran.stderr);
}

/// Answers in whatever way it is asked to, as long as the server supports it.
fn server(no_tools: bool, no_schema: bool) -> Script {
    Script::from_fn(move |request: &Request| {
        if no_tools && !request.tools.is_empty() {
            return Reply::failure(Failure::ToolsUnsupported);
        }
        if no_schema && request.schema.is_some() {
            return Reply::failure(Failure::other(
                400,
                "invalid_request_error",
                "'response_format' of type 'json_schema' is not supported",
            ));
        }
        let answered = request.turns.iter().any(|turn| format!("{turn:?}").contains("42"));
        let call = "{\"tool_calls\": [{\"name\": \"calculate\", \"arguments\": {\"expression\": \"6 * 7\"}}]}";
        match (answered, request.tools.is_empty()) {
            (true, _) if request.schema.is_some() => Reply::text("{\"answer\": \"It is 42.\"}"),
            (true, _) => Reply::text("It is 42."),
            (false, false) => Reply::calls([("calculate", json!({"expression": "6 * 7"}))]),
            (false, true) => Reply::text(call),
        }
    })
}

#[test]
fn what_a_model_cannot_do_is_done_in_another_way() {
    let cases = [
        (server(false, false), "", &[][..], "native"),
        (server(true, false), "", &["native structured"], "structured"),
        (server(true, true), "", &["native structured", "structured json"], "json"),
        (server(false, true), "function_calling: false", &["structured json"], "json"),
        (server(true, false), "function_calling: false", &[], "structured"),
    ];
    for (script, more, changes, last) in cases {
        for provider in PROVIDERS {
            let scene = Scene::of(provider, more, script.clone());
            let ran = scene.events(&["6 * 7?"]);
            let name = format!("{provider} {more} {changes:?}");
            assert_eq!((ran.code, ran.end()), (Some(0), ("answered".into(), "It is 42.".into())), "{name}: {}", ran.stderr);
            assert_eq!(ran.strategies(), changes, "{name}");
            assert_eq!(ran.calls(), [("calculate".to_owned(), json!({"expression": "6 * 7"}), "42".to_owned())], "{name}");
            assert_eq!(ran.data("model_requested").last().expect("one")["strategy"], last, "{name}");
            assert_eq!(ran.pieces(), if last == "json" { ran.pieces() } else { "It is 42.".to_owned() }, "people see the answer: {name}");
            // What was learned is remembered, so that the next run does not try it again.
            let again = scene.events(&["6 * 7?"]);
            assert_eq!((again.strategies().len(), again.end().1.as_str()), (0, "It is 42."), "{name}: {}", again.stderr);
        }
    }
}

/// By the agent's own wish, native calling is not even tried.
#[test]
fn an_agent_decides_how_its_calls_are_carried() {
    let structured = "name: a\ntools: [calculate]\noutput_strategy: {function_calling: false}\n";
    let scene = Scene::new(server(false, false)).with("agents/a.yaml", structured);
    let ran = scene.events(&["6 * 7?"]);
    assert_eq!((ran.code, ran.end().1.as_str(), ran.strategies().len()), (Some(0), "It is 42.", 0), "{}", ran.stderr);
    for request in scene.server.requests() {
        assert!(request.tools.is_empty() && request.schema.is_some() && request.system().contains("calculate"), "{request:?}");
    }
    // What one agent wants is no experience with the model: another one begins natively.
    let scene = scene.with("agents/b.yaml", "name: b\ntools: [calculate]\n");
    let ran = scene.events(&["--agent", "b", "6 * 7?"]);
    assert_eq!(ran.data("model_requested")[0]["strategy"], "native", "{}", ran.stderr);
    let native_only = "name: a\ntools: [calculate]\noutput_strategy: {fallback_to_structured_output: false}\n";
    let scene = Scene::new(server(true, false)).with("agents/a.yaml", native_only);
    let ran = scene.events(&["6 * 7?"]);
    assert_eq!((ran.code, ran.end().1.as_str()), (Some(1), "unsupported"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("does not support function calling") && ran.stderr.contains("fallback_to_structured_output"),
        "{}",
        ran.stderr
    );
    // The same where a call was written as text: it is not made.
    let text = Reply::text("{\"tool_calls\": [{\"name\": \"calculate\", \"arguments\": {\"expression\": \"6 * 7\"}}]}");
    let ran = Scene::new(text).with("agents/a.yaml", native_only).events(&["6 * 7?"]);
    assert_eq!((ran.code, ran.end().1.as_str(), ran.calls().len()), (Some(1), "unsupported", 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("wrote its call as text"), "{}", ran.stderr);
    // The model is known not to call natively, and the agent must not fall back.
    let scene = Scene::of("openai_compatible", "function_calling: false", server(true, false)).with("agents/a.yaml", native_only);
    let ran = scene.run(&["--json", "6 * 7?"]);
    assert_eq!((ran.code, scene.server.requests().len()), (Some(1), 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot call functions") && ran.stdout.contains("\"unsupported\""), "{}{}", ran.stdout, ran.stderr);
    // Both off is wrong, and the file says so before anyone runs it: nor does an agent with all tools answer in its place.
    let neither = "name: a\noutput_strategy: {function_calling: false, fallback_to_structured_output: false}\n";
    let scene = Scene::new([]).with("agents/a.yaml", neither);
    for arguments in [&["--agent", "a", "go"][..], &["go"], &["--json", "go"]] {
        let ran = scene.run(arguments);
        assert_eq!((ran.code, scene.server.requests().len()), (Some(1), 0), "{}", ran.stderr);
        for part in ["agents/a.yaml:2", "both strategies off", "turn on `function_calling`"] {
            assert!(ran.stderr.contains(part), "{part} is missing: {}", ran.stderr);
        }
    }
}

/// What was learned saves a try. Where it cannot be read, the try is made, and what was learned from it replaces it.
#[test]
fn a_damaged_memory_of_models_stops_no_run() {
    let bytes: [(&str, &[u8]); 7] = [
        ("no JSON", b"{\"house"),
        ("empty", b""),
        ("another form", b"[1, 2]"),
        ("no text", b"\xff\xfe\x00"),
        ("deep", &[b'['; 10_000]),
        ("null", b"null"),
        ("zeros", &[0; 4096]),
    ];
    for (name, damaged) in bytes {
        let scene = Scene::new(server(true, false));
        let memory = scene.project.state.path().join("helve/models.json");
        std::fs::create_dir_all(memory.parent().expect("a folder")).expect("a folder");
        std::fs::write(&memory, damaged).expect("a file");
        let ran = scene.events(&["6 * 7?"]);
        assert_eq!((ran.code, ran.end().1.as_str(), ran.strategies().len()), (Some(0), "It is 42.", 1), "{name}: {}", ran.stderr);
        let again = scene.events(&["6 * 7?"]);
        assert_eq!((again.code, again.strategies().len()), (Some(0), 0), "{name}: it is whole again: {}", again.stderr);
        // The same where all is well but for what is said of this model.
        let text = std::fs::read_to_string(&memory).expect("a file");
        for wrong in ["42", "\"telepathy\"", "{}", "null"] {
            std::fs::write(&memory, text.replace("\"structured\"", wrong)).expect("a file");
            let ran = scene.events(&["6 * 7?"]);
            assert_eq!((ran.code, ran.end().1.as_str(), ran.strategies().len()), (Some(0), "It is 42.", 1), "{wrong}: {}", ran.stderr);
        }
    }
    // Nothing can be remembered here at all.
    let scene = Scene::new(server(true, false));
    std::fs::create_dir_all(scene.project.state.path().join("helve/models.json/in the way")).expect("a folder");
    for _ in 0..2 {
        let ran = scene.events(&["6 * 7?"]);
        assert_eq!((ran.code, ran.end().1.as_str(), ran.strategies().len()), (Some(0), "It is 42.", 1), "{}", ran.stderr);
    }
}
