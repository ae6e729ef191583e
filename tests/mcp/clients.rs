//! Helve as a server, with servers of others behind it, as the clients of others see it.

use serde_json::{Value, json};

use crate::peers::{Peers, program};
use crate::running::Running;
use crate::scene::{Scene, folder};

const HELD: &str = "name: held\ndescription: Waits for a person.\npermission: confirm\ncommand: [sh, -c, \"echo held back\"]\n";
const LATER: &str = "name: later\ndescription: Runs later.\nmode: background\ncommand: [sh, -c, \"echo made later\"]\n";
/// A tool that is added while clients are connected. It waits for trust, and nothing else does.
const ADDED: &str = "name: added\ndescription: Was not there before.\napi_url: http://127.0.0.1:9/\n";
const FEW: &str = "name: few\ndescription: Only some.\ntools: [calculate, \"time_*\"]\n";

/// One server of each era, and tools of the project's own: one waits for a person, one runs in the background.
pub fn scene(peers: &Peers) -> Scene {
    let files = [("tools/builtin/held.yaml", HELD), ("tools/builtin/later.yaml", LATER), ("tool_sets/few.yaml", FEW)];
    let scene = Scene::new(&files).with("everything", program(&peers.everything("stdio"))).with("time", program(&peers.time()));
    std::fs::create_dir_all(scene.project.folder.path().join("tools/native")).expect("a folder");
    scene.agreed()
}

/// Lets a client walk through Helve, answers the question that it meets on its way, and gives what it saw.
fn walk(peers: &Peers, scene: &Scene, script: &str, era: &str, place: &[String]) -> Value {
    let home = folder();
    let mut client = peers.client(script, &home);
    scene.variables(&mut client);
    client.arg(era).args(place).env("ADD", scene.project.folder.path().join("tools/native/added.yaml")).env("ADDED", ADDED);
    let mut client = Running::start(&mut client);
    client.wait_for("a call waits", ";");
    scene.approve_what_waits();
    let (status, stdout, stderr) = client.finish();
    assert!(status.success(), "{script}: {stdout}{stderr}");
    serde_json::from_str(stdout.trim()).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

/// Checks what a client saw on its walk.
fn expect(seen: &Value, script: &str, protocol: &str) {
    let has = |list: &str, tool: &str| seen[list].as_array().is_some_and(|names| names.contains(&json!(tool)));
    for tool in ["calculate", "held", "later", "everything_echo", "time_convert_time"] {
        assert!(has("tools", tool), "{tool} is not in {seen}");
    }
    assert!(!has("tools", "added") && has("then", "added") && has("then", "everything_echo"), "{seen}");
    for (what, expected) in [
        ("protocol", json!(protocol)),
        ("server", json!("helve")),
        ("echo", json!("Echo: hi")),
        ("structured", json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82})),
        ("kinds", json!(["text", "image", "text"])),
        ("unknown", json!(-32602)),
        ("slow", json!("Long running operation completed. Duration: 0.3 seconds, Steps: 3.")),
        ("time", json!("+8.0h")),
        ("later", json!("made later")),
        ("held", json!("held back")),
    ] {
        assert_eq!(seen[what], expected, "{what} in {seen}");
    }
    for (what, words) in [("error", "Invalid resourceId: 0.5"), ("wrong", "/a: expected number")] {
        let said = &seen[what];
        assert!(said["is_error"] == json!(true) && said["text"].as_str().is_some_and(|text| text.contains(words)), "{seen}");
    }
    let done: Vec<f64> = seen["progress"].as_array().expect("a list").iter().filter_map(|told| told[0].as_f64()).collect();
    assert!(!done.is_empty() && done.is_sorted(), "{seen}");
    // The TypeScript SDKs forget progress that they read together with the answer.
    assert!(done.len() == 3 || script.ends_with("mjs"), "{seen}");
}

fn over_http(test: &str, script: &str, era: &str, protocol: &str) {
    let Some(peers) = Peers::find(test) else { return };
    let scene = scene(&peers);
    let (mut server, address) = scene.serve(&[]);
    expect(&walk(&peers, &scene, script, era, &[address]), script, protocol);
    server.interrupt();
    let (status, _, stderr) = server.finish();
    assert!(status.success() && !stderr.contains("panicked"), "{stderr}");
}

fn over_stdio(test: &str, script: &str, era: &str, protocol: &str) {
    let Some(peers) = Peers::find(test) else { return };
    let scene = scene(&peers);
    expect(&walk(&peers, &scene, script, era, &scene.stdio()), script, protocol);
}

#[test]
fn the_python_sdk_walks_through_helve_over_http() {
    over_http("the_python_sdk_walks_through_helve_over_http", "python_sdk.py", "auto", "2026-07-28");
}

#[test]
fn the_python_sdk_walks_through_helve_over_stdio() {
    over_stdio("the_python_sdk_walks_through_helve_over_stdio", "python_sdk.py", "auto", "2026-07-28");
}

#[test]
fn fastmcp_walks_through_helve_over_http() {
    over_http("fastmcp_walks_through_helve_over_http", "fast_client.py", "legacy", "2025-11-25");
}

#[test]
fn the_first_typescript_sdk_walks_through_helve_over_http() {
    over_http("the_first_typescript_sdk_walks_through_helve_over_http", "sdk_1.mjs", "legacy", "2025-11-25");
}

#[test]
fn the_first_typescript_sdk_walks_through_helve_over_stdio() {
    over_stdio("the_first_typescript_sdk_walks_through_helve_over_stdio", "sdk_1.mjs", "legacy", "2025-11-25");
}

#[test]
fn the_second_typescript_sdk_walks_through_helve_over_http() {
    over_http("the_second_typescript_sdk_walks_through_helve_over_http", "sdk_2.mjs", "auto", "2026-07-28");
}

/// Runs the Inspector once; gives its exit code and what it says.
fn inspect(peers: &Peers, scene: &Scene, words: &[&str]) -> (Option<i32>, String) {
    let home = folder();
    let mut inspector = peers.inspector(&home);
    scene.variables(&mut inspector);
    let (status, stdout, stderr) = Running::start(inspector.args(words)).finish();
    (status.code(), if status.success() { stdout } else { stderr })
}

#[test]
fn the_inspector_sees_a_set_and_calls_its_tools() {
    let Some(peers) = Peers::find("the_inspector_sees_a_set_and_calls_its_tools") else { return };
    let scene = scene(&peers);
    let (_server, address) = scene.serve(&["--set", "few"]);
    let ask = |words: &[&str]| inspect(&peers, &scene, &[&[&*address], words].concat());
    let listed = crate::running::until("the server behind", || {
        let (code, said) = ask(&["--method", "tools/list", "--strict"]);
        assert_eq!(code, Some(0), "{said}");
        let list: Value = serde_json::from_str(&said).expect("JSON");
        let names: Vec<String> = list["tools"].as_array()?.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect();
        names.iter().any(|name| name.starts_with("time_")).then_some(names)
    });
    assert_eq!(listed, ["calculate", "time_get_current_time", "time_convert_time"]);
    let (code, said) = ask(&["--method", "tools/call", "--tool-name", "calculate", "--tool-arg", "expression=6*7"]);
    let result: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((code, &result["structuredContent"]["result"], &result["content"][0]["text"]), (Some(0), &json!("42"), &json!("42")));
    let (code, said) = ask(&["--method", "tools/call", "--tool-name", "everything_echo", "--tool-arg", "message=hi"]);
    assert!(code != Some(0) && said.contains("not found"), "what is not in the set is not there: {said}");
}

#[test]
fn the_inspector_calls_a_tool_over_stdio() {
    let Some(peers) = Peers::find("the_inspector_calls_a_tool_over_stdio") else { return };
    let scene = Scene::new(&[]);
    let served = scene.stdio();
    // It gives a server none of its own variables.
    let state = format!("HELVE_STATE_DIR={}", scene.project.state.path().join("helve").display());
    let mut words = vec!["-e", &*state];
    words.extend(served.iter().map(String::as_str));
    words.extend(["--method", "tools/call", "--tool-name", "calculate", "--tool-arg", "expression=6*7"]);
    let (code, said) = inspect(&peers, &scene, &words);
    assert!(code == Some(0) && said.contains("\"42\""), "{said}");
}
