//! Agents of a project: what their files say is what the model is told and what its calls may do.

use std::time::Duration;

use helve_testkit::{Reply, Request, Script};
use serde_json::json;

use crate::folder::echo;
use crate::scene::{NAP, Running, Scene, dies};

const CLERK: &str = "name: clerk\ninstructions: You count beans.\ntools: [calculate]\n";

fn sums() -> Script {
    Script::from_fn(|request: &Request| {
        let number = request.number;
        Reply::calls([
            ("calculate", json!({"expression": format!("{number} + 1")})),
            ("calculate", json!({"expression": format!("{number} + 2")})),
        ])
    })
}

#[test]
fn instructions_and_toolkit_reach_the_model() {
    for provider in ["openai_compatible", "openai_responses", "anthropic", "gemini"] {
        let calls = Reply::calls([("get_time", json!({})), ("calculate", json!({"expression": "2 + 3"}))]);
        let scene = Scene::of(provider, "", [calls, Reply::text("Five beans.")]).with("agents/clerk.yaml", CLERK);
        let scene = scene.with("agents/other.yaml", "name: other\ntools: [get_time]\n");
        let ran = scene.events(&["--agent", "clerk", "How many?"]);
        assert_eq!((ran.code, ran.end().1.as_str()), (Some(0), "Five beans."), "{provider}: {}", ran.stderr);
        for request in scene.server.requests() {
            assert!(request.system().contains("You count beans."), "{provider}: {:?}", request.turns);
            assert_eq!((request.tools.as_slice(), request.model.as_str()), (&["calculate".to_owned()][..], "big"), "{provider}");
        }
        assert_eq!(scene.server.requests()[0].user(), "How many?", "{provider}");
        assert_eq!(ran.data("run_started")[0]["agent"], "clerk");
        let calls = ran.calls();
        assert_eq!((calls[0].2.as_str(), calls[1].2.as_str()), ("unknown_tool", "5"), "outside the toolkit: {provider}");
        let outcome = &ran.data("tool_complete").iter().find(|data| data["outcome"]["tool"] == "get_time").expect("one")["outcome"].clone();
        assert!(outcome["error"]["message"].as_str().is_some_and(|said| said.contains("clerk")), "the agent is named: {outcome}");
    }
}

#[test]
fn which_agent_is_chosen_as_people_say() {
    let first_line = |request: &Request| Reply::text(request.system().lines().next().unwrap_or_default());
    let scene = Scene::new(Script::from_fn(first_line)).with("agents/clerk.yaml", CLERK);
    assert_eq!(scene.run(&["hi"]).stdout, "You count beans.\n", "the only one");
    let scene = scene.with("agents/poet.yaml", "name: poet\ninstructions: You write verse.\n");
    let several = scene.run(&["hi"]);
    assert!(several.code == Some(1) && several.stderr.contains("clerk, poet"), "{}", several.stderr);
    assert_eq!(scene.run(&["--agent", "poet", "hi"]).stdout, "You write verse.\n");
    let unknown = scene.run(&["--agent", "peot", "hi"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("did you mean `poet`?"), "{}", unknown.stderr);
    let none = Scene::new(Script::from_fn(|request: &Request| Reply::text(format!("{} tools", request.tools.len()))));
    assert!(none.run(&["hi"]).stdout.as_str() >= "3 tools\n", "without a file, all tools");
}

/// What could not be read is said, and the run goes on with the rest.
#[test]
fn broken_files_are_said_before_a_run() {
    let scene = Scene::new(Reply::text("Hi.")).with("tools/builtin/bad.yaml", "name: bad\n").with("agents/clerk.yaml", CLERK);
    let ran = scene.run(&["hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hi.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("tools/builtin/bad.yaml"), "{}", ran.stderr);
}

/// An agent's own model goes before the project's, and `--model` before both.
#[test]
fn the_model_is_the_agents_then_the_projects() {
    let scene = Scene::new(Script::from_fn(|request: &Request| Reply::text(request.model.clone())));
    let url = scene.server.url().to_owned();
    let scene = scene.with("agents/a.yaml", &format!("name: a\nmodel: \"{url}#small\"\n"));
    assert_eq!(scene.run(&["hi"]).stdout, "small\n");
    assert_eq!(scene.run(&["--model", "house", "hi"]).stdout, "big\n");
    assert_eq!(scene.run(&["--model", &url, "hi"]).stdout, "scripted-model\n", "the first one that the server has");
    let asked = scene.server.requests();
    assert!(asked.iter().filter(|request| request.model == "small").all(|request| request.header("authorization").is_none()), "no key");
}

#[test]
fn limits_end_a_run_with_their_name() {
    let cases = [("max_iterations: 3", "max_iterations", 3), ("max_calls: 5", "max_calls", 3), ("max_tokens: 40", "token_budget", 3)];
    for (limit, reason, most) in cases {
        let scene = Scene::new(sums()).with("agents/a.yaml", &format!("name: a\ntools: [calculate]\nlimits: {{{limit}}}\n"));
        let ran = scene.events(&["count"]);
        assert_eq!((ran.code, ran.end().0.as_str()), (Some(1), reason), "{limit}: {}", ran.stderr);
        assert_eq!(scene.server.requests().len(), most, "{limit}");
        assert!(ran.stderr.contains("run stopped") && ran.stderr.contains("raise the limit"), "{limit}: {}", ran.stderr);
    }
    let priced = Scene::of("openai_compatible", "price: {input: 100000, output: 0}", sums());
    let ran = priced.with("agents/a.yaml", "name: a\ntools: [calculate]\nlimits: {max_cost: 1.5}\n").events(&["count"]);
    assert_eq!((ran.code, ran.end().0.as_str()), (Some(1), "cost_budget"), "a dollar a turn: {}", ran.stderr);
    assert_eq!(ran.data("run_finished")[0]["usage"]["cost"], 2.0);
    let scene = Scene::new(sums()).with("agents/a.yaml", "name: a\ntools: [calculate]\nlimits: {max_calls: 5}\n");
    let calls = scene.events(&["count"]).calls();
    let made = calls.iter().filter(|(_, _, came)| came != "permission_denied").count();
    assert_eq!((calls.len(), made), (6, 5), "not one call more is made: {calls:?}");
}

#[test]
fn time_ends_a_run_in_the_middle_of_a_call() {
    let scene = Scene::new(Reply::calls([("nap", json!({}))])).with(NAP.0, NAP.1);
    let scene = scene.with("agents/a.yaml", "name: a\ntools: [nap]\nlimits: {timeout: 1s}\n");
    let ran = scene.events(&["--approve", "yes", "sleep"]);
    assert_eq!((ran.code, ran.end().0.as_str(), ran.calls()[0].2.as_str()), (Some(1), "time_budget", "cancelled"), "{}", ran.stderr);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    assert!(dies(&scene.nap()), "what the tool started");
}

#[test]
fn what_is_denied_is_not_done_and_the_model_is_told() {
    let script = || {
        let calls = Reply::calls([("calculate", json!({"expression": "1 + 1"})), ("get_date", json!({"timezone": "UTC"}))]);
        [calls, Reply::text("I may not.")]
    };
    let agent = "name: a\ntools: [calculate, get_date]\n";
    let by_agent = Scene::new(script()).with("agents/a.yaml", &format!("{agent}permissions: {{calculate: deny}}\n"));
    let scene = Scene::new(script());
    let config = std::fs::read_to_string(scene.project.folder.path().join("helve.yaml")).expect("a file");
    let rules = "permissions: [{tool: \"calc*\", permission: deny}]\n";
    let by_project = scene.with("agents/a.yaml", agent).with("helve.yaml", &format!("{config}{rules}"));
    for scene in [by_agent, by_project] {
        // Nobody can approve what is denied.
        let ran = scene.events(&["--approve", "yes", "go"]);
        assert_eq!((ran.code, ran.end().1.as_str()), (Some(0), "I may not."), "{}", ran.stderr);
        let calls = ran.calls();
        assert_eq!(calls[0].2, "permission_denied");
        assert!(calls[1].2.contains("20"), "the other call is made: {calls:?}");
        assert!(scene.told()[0].contains("permission_denied"), "{:?}", scene.told());
        assert!(ran.data("permission_request").is_empty(), "nobody is asked");
    }
}

/// A person who calls a tool consents; an agent asks, until the folder is trusted.
/// Whoever stands behind an address would read every word, so a folder alone cannot choose one off this machine.
#[test]
fn a_folder_nobody_trusts_cannot_send_words_away() {
    for settings in [
        "model: https://models.example/v1#m\n",
        "model: away\nmodels: {away: {provider: openai_compatible, base_url: \"https://models.example/v1\", model: m}}\n",
    ] {
        let scene = Scene::new(Reply::text("hi")).with("helve.yaml", settings).untrusted();
        let mut command = scene.command(&["run", "a secret"]);
        let ran = Running::start(command.env_remove("HELVE_MODEL"), "").finish();
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("the folder is not trusted") && ran.stderr.contains("helve trust"), "{}", ran.stderr);
    }
}

#[test]
fn commands_of_a_folder_nobody_trusts_must_be_confirmed() {
    let script = Script::from_fn(|request: &Request| match request.results()[..] {
        [] => Reply::calls([("say", json!({"text": "hello"}))]),
        [said] => Reply::text(if said.contains("hello") { "Said." } else { "Not said." }),
        _ => Reply::text("?"),
    });
    let scene = Scene::new(script).with("tools/builtin/say.yaml", &format!("{}permission: auto\n", echo("say"))).untrusted();
    let waiting = scene.events(&["say hello"]);
    assert_eq!((waiting.code, waiting.end().0.as_str()), (Some(3), "run_waiting"), "{}", waiting.stderr);
    assert!(
        waiting.data("permission_request")[0]["reason"].as_str().is_some_and(|reason| reason.contains("helve trust")),
        "{}",
        waiting.stdout
    );
    assert_eq!(scene.run(&["--approve", "no", "say hello"]).stdout, "Not said.\n");
    assert_eq!(scene.run(&["--approve", "yes", "say hello"]).stdout, "Said.\n");
    let trusted = scene.command(&["trust", "--yes"]).output().expect("helve runs");
    assert_eq!(trusted.status.code(), Some(0));
    assert_eq!(scene.run(&["say hello"]).stdout, "Said.\n");
}
