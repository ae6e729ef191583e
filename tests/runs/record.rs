//! Runs that are recorded, through the binary: waited for, killed, resumed, cancelled, and background calls.

use std::process::Command;

use helve_testkit::{Reply, Request, Script};
use serde_json::{Value, json};

use crate::scene::{NAP, Running, Scene, dies};

/// Writes down each time it runs.
const PAY: (&str, &str) = (
    "tools/builtin/pay.yaml",
    "name: pay\ndescription: Pays.\npermission: confirm\ncommand: [sh, -c, \"cat; echo paid >> paid.log\"]\nparameters: [{name: amount, type: integer}]\n",
);
/// Runs later.
const LATER: (&str, &str) = (
    "tools/builtin/later.yaml",
    "name: later\ndescription: Runs later.\nmode: background\nidempotent: true\ncommand: [sh, -c, \"echo made later\"]\n",
);

impl Scene {
    fn helve(&self, arguments: &[&str]) -> (Option<i32>, Value, String) {
        let output = self.command(&[arguments, &["--json"]].concat()).output().expect("helve runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{stderr}"));
        (output.status.code(), value, stderr)
    }

    fn paid(&self) -> usize {
        std::fs::read_to_string(self.project.folder.path().join("paid.log")).unwrap_or_default().lines().count()
    }
}

fn only<'a>(list: &'a Value, name: &str) -> &'a Value {
    let rows = list[name].as_array().unwrap_or_else(|| panic!("{list}"));
    assert_eq!(rows.len(), 1, "{list}");
    &rows[0]
}

fn answers_results() -> Script {
    Script::from_fn(|request: &Request| {
        let told = format!("{:?}", request.turns);
        if told.contains("Result") {
            Reply::text("all done")
        } else {
            Reply::calls([("pay", json!({"amount": 5})), ("pay", json!({"amount": 7}))])
        }
    })
}

#[test]
fn a_run_waits_is_answered_elsewhere_and_goes_on() {
    let scene = Scene::new(answers_results()).with(PAY.0, PAY.1);
    let waiting = scene.events(&["pay"]);
    assert_eq!((waiting.code, waiting.end().0.as_str()), (Some(3), "run_waiting"), "{}", waiting.stderr);
    let (_, list, _) = scene.helve(&["approvals"]);
    let asked = list["approvals"].as_array().expect("a list");
    assert_eq!(asked.len(), 2, "{list}");
    for (place, request) in asked.iter().enumerate() {
        assert_eq!((&request["tool"], &request["state"]), (&json!("pay"), &json!("pending")));
        let id = request["id"].as_str().expect("an id");
        assert!(request["digest"].is_string() && request["call_id"].is_string() && request["run_id"].is_string(), "{request}");
        let answer: &[&str] = if place == 0 { &["approvals", "approve", id] } else { &["approvals", "deny", id, "--reason", "too much"] };
        assert_eq!(scene.helve(answer).0, Some(0));
        let (code, again, _) = scene.helve(&["approvals", "approve", id]);
        assert_eq!((code, again["error"]["kind"].as_str()), (Some(1), Some("conflict")), "one answer wins");
    }
    assert_eq!(scene.paid(), 0, "nothing runs before the run goes on");
    let (_, runs, _) = scene.helve(&["runs"]);
    let run = only(&runs, "runs");
    assert_eq!(run["state"], "ready");
    let id = run["id"].as_str().expect("an id");
    let resumed = scene.run(&["--resume", id]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "all done\n"), "{}", resumed.stderr);
    assert_eq!(scene.paid(), 1, "the denied call never runs");
    assert!(scene.told().iter().any(|text| text.contains("too much")), "{:?}", scene.told());
    let (_, shown, _) = scene.helve(&["runs", "show", id]);
    assert_eq!(shown["run"]["state"], "done");
    let events = shown["events"].as_array().expect("events");
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let (code, again, _) = scene.helve(&["run", "--resume", id]);
    assert_eq!((code, again["error"]["kind"].as_str()), (Some(1), Some("storage")), "it is over: {again}");
}

/// A tool that must not run twice is interrupted when its process is killed, and the model is told.
#[test]
fn a_killed_run_is_resumed_and_nothing_runs_twice() {
    let script = Script::from_fn(|request: &Request| {
        if format!("{:?}", request.turns).contains("Result") { Reply::text("I see") } else { Reply::calls([("nap", json!({}))]) }
    });
    let scene = Scene::new(script).with(NAP.0, NAP.1);
    let mut running = scene.start(&["--json", "--approve", "yes", "sleep"], "");
    running.wait_for("\"tool_requested\"");
    let nap = scene.nap();
    let (_, runs, _) = scene.helve(&["runs"]);
    let id = only(&runs, "runs")["id"].as_str().expect("an id").to_owned();
    let (code, taken, _) = scene.helve(&["run", "--resume", &id]);
    assert_eq!((code, taken["error"]["kind"].as_str()), (Some(1), Some("storage")), "it is driven: {taken}");
    running.kill();
    let _ = Command::new("kill").args(["-9", &nap]).status();
    let resumed = scene.run(&["--resume", &id]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "I see\n"), "{}", resumed.stderr);
    assert!(scene.told().iter().any(|text| text.contains("interrupted")), "{:?}", scene.told());
    let (_, shown, _) = scene.helve(&["runs", "show", &id]);
    let of = |kind: &str| shown["events"].as_array().expect("events").iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("tool_requested"), of("tool_complete"), of("run_finished")), (1, 1, 1), "{shown}");
}

#[test]
fn background_calls_are_accepted_run_by_a_worker_and_told_later() {
    let script = Script::from_fn(|request: &Request| match format!("{:?}", request.turns) {
        told if told.contains("made later") => Reply::text("it is made"),
        told if told.contains("in the background as task") => Reply::text("it will be made"),
        _ => Reply::calls([("later", json!({}))]),
    });
    let scene = Scene::new(script).with(LATER.0, LATER.1);
    let first = scene.events(&["--approve", "yes", "make it"]);
    assert_eq!((first.code, first.end().1.as_str()), (Some(0), "it will be made"), "{}", first.stderr);
    assert_eq!(first.data("task_accepted").len(), 1, "{:?}", first.events);
    let (_, tasks, _) = scene.helve(&["tasks"]);
    let task = only(&tasks, "tasks");
    assert_eq!((&task["state"], &task["tool"]), (&json!("queued"), &json!("later")));
    let (code, worked, stderr) = scene.helve(&["worker", "--until-empty"]);
    assert_eq!((code, &worked["tasks_run"]), (Some(0), &json!(1)), "{stderr}");
    let id = task["id"].as_str().expect("an id");
    let (_, task, _) = scene.helve(&["tasks", "show", id]);
    assert_eq!((&task["state"], &task["outcome"]["success"]), (&json!("done"), &json!(true)), "{task}");
    let (code, error, _) = scene.helve(&["tasks", "cancel", id]);
    assert_eq!((code, error["error"]["kind"].as_str()), (Some(1), Some("conflict")));
}

#[test]
fn who_stops_waiting_for_a_call_leaves_it_in_the_queue() {
    let text =
        "name: later\ndescription: Runs later.\nmode: background\nidempotent: true\ncommand: [sh, -c, \"echo $$ > nap.pid; sleep 60\"]\n";
    let scene = Scene::new(Reply::text("hi")).with(LATER.0, text);
    let running = Running::start(&mut scene.command(&["tools", "call", "later", "--wait"]), "");
    let nap = scene.nap();
    running.interrupt();
    let ran = running.finish();
    assert_eq!((ran.code, dies(&nap)), (Some(130), true), "{}", ran.stderr);
    let (_, tasks, _) = scene.helve(&["tasks"]);
    let task = only(&tasks, "tasks");
    assert_eq!((&task["state"], &task["attempts"]), (&json!("queued"), &json!(0)), "as if nobody had begun it");
    assert!(ran.stderr.contains(&format!("helve tasks show {}", task["id"].as_str().expect("an id"))), "{}", ran.stderr);
    // What is not there is named, with where to look.
    let said = scene.command(&["tasks", "show", "call_01M7GH0NV0ASXMH73GMC4XK7KR"]).output().expect("helve runs").stderr;
    assert!(String::from_utf8_lossy(&said).contains("`helve tasks` lists them"));
    let said = scene.command(&["backup", "nowhere/copy.db"]).output().expect("helve runs").stderr;
    assert!(String::from_utf8_lossy(&said).contains("the folder nowhere does not exist"));
}

#[test]
fn a_tool_says_who_goes_first_and_who_waits() {
    let tool = |name: &str, rules: &str| {
        let text =
            format!("name: {name}\ndescription: Runs later.\nmode: background\n{rules}command: [sh, -c, \"echo {name} >> order.log\"]\n");
        (format!("tools/builtin/{name}.yaml"), text)
    };
    let mut scene = Scene::new(Reply::text("hi"));
    for (path, text) in [tool("low", "priority: -5\n"), tool("high", "priority: 5\n"), tool("tomorrow", "delay: 1day\n")] {
        scene = scene.with(&path, &text);
    }
    for name in ["low", "tomorrow", "high"] {
        assert_eq!(scene.helve(&["tools", "call", name]).1["status"], "accepted");
    }
    assert_eq!(scene.helve(&["worker", "--until-empty", "--concurrency", "1"]).1["tasks_run"], 2);
    let order = std::fs::read_to_string(scene.project.folder.path().join("order.log")).expect("a log");
    assert_eq!(order, "high\nlow\n");
    let (_, tasks, _) = scene.helve(&["tasks", "--state", "queued"]);
    assert_eq!(only(&tasks, "tasks")["tool"], "tomorrow");
    let scene = Scene::new(Reply::text("hi")).with("tools/builtin/x.yaml", &tool("x", "priority: 50\n").1);
    let output = scene.command(&["tools", "check"]).output().expect("helve runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("x.yaml:4") && said.contains("priority"), "{said}");
}

#[test]
fn a_waiting_run_can_be_cancelled_and_its_questions_are_over() {
    let scene = Scene::new(answers_results()).with(PAY.0, PAY.1);
    assert_eq!(scene.run(&["pay"]).code, Some(3));
    let (_, runs, _) = scene.helve(&["runs"]);
    let id = only(&runs, "runs")["id"].as_str().expect("an id").to_owned();
    let (code, cancelled, _) = scene.helve(&["runs", "cancel", &id]);
    assert_eq!((code, &cancelled["run"]["state"]), (Some(0), &json!("cancelled")));
    assert_eq!(scene.helve(&["approvals"]).1, json!({"approvals": []}));
    let (_, shown, _) = scene.helve(&["runs", "show", &id]);
    let of = |kind: &str| shown["events"].as_array().expect("events").iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("tool_requested"), of("tool_complete"), of("run_finished")), (2, 2, 1), "every call is answered: {shown}");
    assert_eq!(scene.paid(), 0);
}

#[test]
fn a_call_that_nobody_can_approve_now_is_kept_and_run_by_a_worker() {
    let scene = Scene::new(Reply::text("hi")).with(PAY.0, PAY.1);
    let (code, waiting, _) = scene.helve(&["tools", "call", "pay", "amount=3"]);
    assert_eq!((code, &waiting["status"]), (Some(3), &json!("waiting")));
    let id = waiting["approval_id"].as_str().expect("an id");
    let (code, error, _) = scene.helve(&["approvals", "approve", id, "--arguments", "{\"amount\": \"much\"}"]);
    assert_eq!((code, error["error"]["kind"].as_str()), (Some(1), Some("invalid_parameters")), "what a person writes is checked too");
    assert_eq!(scene.helve(&["approvals", "approve", id, "--arguments", "{\"amount\": 4}"]).0, Some(0));
    assert_eq!((scene.helve(&["worker", "--until-empty"]).1, scene.paid()), (json!({"tasks_run": 1, "runs_resumed": 0}), 1));
    let (_, task, _) = scene.helve(&["tasks", "show", waiting["call_id"].as_str().expect("an id")]);
    assert_eq!((&task["state"], &task["arguments"]), (&json!("done"), &json!({"amount": 4})), "{task}");
}

#[test]
fn a_copy_of_the_record_is_a_record() {
    let scene = Scene::new(Reply::text("hi"));
    assert_eq!(scene.run(&["hello"]).code, Some(0));
    let copy = scene.project.state.path().join("copy.db");
    let name = copy.to_str().expect("a name");
    assert_eq!(scene.helve(&["backup", name]).0, Some(0));
    let (code, error, _) = scene.helve(&["backup", name]);
    assert_eq!((code, error["error"]["kind"].as_str()), (Some(1), Some("conflict")), "nothing is written over");
    let store = format!("sqlite:{name}");
    assert_eq!(scene.helve(&["--store", &store, "runs"]).1, scene.helve(&["runs"]).1);
}

#[test]
fn a_record_that_cannot_be_used_says_so() {
    let scene = Scene::new(Reply::text("hi"));
    scene
        .project
        .write("notes.txt", b"this is no database at all, only a text that is long enough to be read as one: ".repeat(40).as_slice());
    let notes = format!("sqlite:{}", scene.project.folder.path().join("notes.txt").display());
    for (store, kind) in [(notes.as_str(), "damaged"), ("sqlite:/proc/none/x.db", "not available"), ("mysql://x", "invalid store URL")] {
        let (code, error, _) = scene.helve(&["--store", store, "runs"]);
        assert_eq!((code, error["error"]["kind"].as_str()), (Some(1), Some("storage")), "{store}: {error}");
        assert!(error["error"]["message"].as_str().is_some_and(|message| message.contains(kind)), "{store}: {error}");
        assert!(error["error"]["details"]["hint"].is_string(), "{store}: {error}");
    }
    let untrusted = Scene::new(Reply::text("hi")).with("helve.yaml", "store: sqlite:chosen.db\n").untrusted();
    assert_eq!(untrusted.helve(&["runs"]).0, Some(0), "the folder has no say in where its record is");
    assert!(!untrusted.project.folder.path().join("chosen.db").exists());
}

/// Answers one request with 204 and gives what it said.
fn listener() -> (String, std::thread::JoinHandle<String>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/asked", listener.local_addr().expect("an address"));
    let heard = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a visitor");
        let mut text = String::new();
        let mut buffer = [0; 4096];
        while !text.ends_with('}') {
            let count = socket.read(&mut buffer).expect("a request");
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        socket.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").expect("an answer");
        text
    });
    (address, heard)
}

#[test]
fn a_trusted_webhook_is_told_of_questions_and_questions_expire() {
    let (address, heard) = listener();
    let project = crate::folder::Project::new(&[("helve.yaml", &format!("approvals: {{expire: 1ms, webhook: \"{address}\"}}\n")), PAY]);
    assert!(project.run(&["trust", "--yes"]).status.success());
    let waiting = project.json(&["tools", "call", "pay", "amount=3", "--json"]);
    let told = heard.join().expect("a listener");
    assert!(told.starts_with("POST /asked") && told.contains("\"amount\":3"), "{told}");
    let id = waiting["approval_id"].as_str().expect("an id");
    assert!(told.contains(id), "{told}");
    std::thread::sleep(std::time::Duration::from_millis(5));
    let late = project.json(&["approvals", "approve", id, "--json"]);
    assert!(late["error"]["message"].as_str().is_some_and(|message| message.contains("expired")), "{late}");
    assert_eq!(project.json(&["worker", "--until-empty", "--json"]), json!({"tasks_run": 0, "runs_resumed": 0}));
}

#[test]
fn a_worker_goes_on_with_runs_that_were_answered() {
    let scene = Scene::new(answers_results()).with(PAY.0, PAY.1);
    assert_eq!(scene.run(&["pay"]).code, Some(3));
    let (_, list, _) = scene.helve(&["approvals"]);
    for request in list["approvals"].as_array().expect("a list") {
        scene.helve(&["approvals", "approve", request["id"].as_str().expect("an id")]);
    }
    let (_, worked, stderr) = scene.helve(&["worker", "--until-empty"]);
    assert_eq!((&worked["runs_resumed"], scene.paid()), (&json!(1), 2), "{stderr}");
    assert_eq!(only(&scene.helve(&["runs"]).1, "runs")["state"], "done");
}

#[test]
fn an_agent_that_wants_to_answers_to_results_by_itself() {
    let script = Script::from_fn(|request: &Request| match format!("{:?}", request.turns) {
        told if told.contains("made later") => Reply::text("it is made"),
        told if told.contains("in the background as task") => Reply::text("it will be made"),
        _ => Reply::calls([("later", json!({}))]),
    });
    let agent = "name: maker\ninstructions: You make things.\ntools: [later]\non_result: run\n";
    let scene = Scene::new(script).with(LATER.0, LATER.1).with("agents/maker.yaml", agent);
    assert_eq!(scene.run(&["--approve", "yes", "make it"]).stdout, "it will be made\n");
    let (_, worked, stderr) = scene.helve(&["worker", "--until-empty"]);
    assert_eq!(worked, json!({"tasks_run": 1, "runs_resumed": 1}), "{stderr}");
    let (_, runs, _) = scene.helve(&["runs"]);
    let states: Vec<_> = runs["runs"].as_array().expect("a list").iter().map(|run| (&run["state"], &run["conversation_id"])).collect();
    assert!(matches!(&states[..], [second, first] if second == first && *first.0 == "done"), "{runs}");
    assert_eq!(scene.helve(&["worker", "--until-empty"]).1, json!({"tasks_run": 0, "runs_resumed": 0}), "once");
}

/// The same record on a server, where other machines see it too.
#[test]
fn the_record_can_be_on_a_server() {
    let test = "the_record_can_be_on_a_server";
    let Ok(server) = std::env::var("HELVE_TEST_POSTGRES") else {
        return helve_testkit::skip(test, "HELVE_TEST_POSTGRES is not set (scripts/postgres starts a server)");
    };
    if !crate::folder::has(test, "psql") {
        return;
    }
    let schema = format!("binary_{}", std::process::id());
    let sql = |statement: String| Command::new("psql").args([&server, "-qc", &statement]).status().expect("psql").success();
    assert!(sql(format!("CREATE SCHEMA {schema}")));
    let store = format!("{server}?options=-csearch_path%3D{schema}");
    let scene = Scene::new(answers_results()).with(PAY.0, PAY.1);
    let waiting = scene.run(&["--store", &store, "pay"]);
    assert_eq!(waiting.code, Some(3), "{}", waiting.stderr);
    let (_, list, _) = scene.helve(&["--store", &store, "approvals"]);
    for request in list["approvals"].as_array().expect("a list") {
        scene.helve(&["--store", &store, "approvals", "approve", request["id"].as_str().expect("an id")]);
    }
    let (_, worked, stderr) = scene.helve(&["--store", &store, "worker", "--until-empty"]);
    assert_eq!((&worked["runs_resumed"], scene.paid()), (&json!(1), 2), "{stderr}");
    assert_eq!(only(&scene.helve(&["--store", &store, "runs"]).1, "runs")["state"], "done");
    let (code, error, _) = scene.helve(&["--store", &store, "backup", "copy.db"]);
    assert_eq!((code, error["error"]["kind"].as_str()), (Some(1), Some("conflict")), "{error}");
    assert!(sql(format!("DROP SCHEMA {schema} CASCADE")));
}
