//! Servers that do not work: what they cost, and who hears of it.

use serde_json::{Value, json};

use crate::folder::stderr;
use crate::pins::second;
use crate::scene::Scene;

/// Three that do not work: a program that is not there, one that never answers, and an address where nobody listens.
fn with_dead(scene: Scene) -> Scene {
    let scene =
        scene.with("absent", json!({"command": ["no-such-program-anywhere"]})).with("silent", json!({"command": ["sleep", "1000"]}));
    scene.with("nobody", json!({"url": "http://127.0.0.1:9/mcp"}))
}

#[test]
fn servers_that_do_not_work_cost_the_others_nothing() {
    let (_inner, file) = second();
    let scene = with_dead(Scene::new(&[])).with("working", file);
    scene.trust();
    let agreed = scene.project.run(&["mcp", "approve", "--yes", "--json"]);
    let told: Value = serde_json::from_slice(&agreed.stdout).expect("JSON");
    assert_eq!(told["approved"], json!(["working"]), "{told}");
    assert_eq!(told["unreachable"], json!(["absent", "nobody", "silent"]), "{told}");
    assert!(!agreed.status.success(), "not all could be looked at");

    let list = scene.project.json(&["mcp", "list", "--json"]);
    let state = |name: &str| {
        let server = list["servers"].as_array().expect("a list").iter().find(|server| server["name"] == name).expect("a server");
        (server["connected"] == json!(true), server["error"].as_str().unwrap_or("-").to_owned())
    };
    assert_eq!(state("working"), (true, "-".to_owned()));
    assert_eq!(state("silent"), (false, "-".to_owned()), "it may still answer");
    let (absent, nobody) = (state("absent"), state("nobody"));
    assert!(!absent.0 && absent.1.contains("`no-such-program-anywhere` is not installed"), "{absent:?}");
    assert!(!nobody.0 && nobody.1.contains("http://127.0.0.1:9 cannot be reached"), "{nobody:?}");

    let (names, odd) = scene.tools();
    assert!(names.contains(&"working_greet".to_owned()), "{names:?}");
    for word in ["`mcp:absent` has no tools now", "`mcp:silent` has no tools now: still connecting", "`mcp:nobody` has no tools now"] {
        assert!(odd.contains(word), "{word} is not in {odd}");
    }
    let called = scene.project.run(&["tools", "call", "working_greet", "text=hi"]);
    assert!(called.status.success(), "{}", stderr(&called));
}

#[test]
fn a_server_that_cannot_be_added_says_why() {
    let scene = Scene::new(&[]);
    let added = scene.project.run(&["mcp", "add", "absent", "--yes", "--", "no-such-program-anywhere"]);
    assert_eq!(added.status.code(), Some(1));
    assert!(stderr(&added).contains("`no-such-program-anywhere` is not installed"), "{}", stderr(&added));
    assert_eq!(scene.server("absent")["connected"], json!(false));
}
