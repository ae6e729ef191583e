//! Servers of others over stdio: which protocol they speak, which tools they have, and calls with effects that can be seen.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::peers::{Peers, program};
use crate::scene::{Scene, folder};

/// What servers speak that were not written for the newest version.
const OLDER: &str = "2025-11-25";
const NEWER: &str = "2026-07-28";

/// Checks how a server is connected and that it has these tools, whatever else it has.
pub fn expect_server(scene: &Scene, name: &str, protocol: &str, tools: &[&str]) {
    let server = scene.connected(name);
    assert_eq!((&server["protocol"], &server["error"]), (&json!(protocol), &Value::Null), "{server}");
    let there = server["tools"].as_array().expect("a list");
    for tool in tools {
        assert!(there.iter().any(|entry| entry["name"] == *tool && entry["approved"] == json!(true)), "{tool} is not in {server}");
    }
}

/// Checks what a call that must fail says.
fn expect_failure(scene: &Scene, tool: &str, arguments: &Value, kind: &str, words: &str) {
    let outcome = scene.call(tool, arguments);
    assert_eq!((&outcome["success"], &outcome["error"]["kind"]), (&json!(false), &json!(kind)), "{outcome}");
    assert!(outcome["error"]["message"].as_str().is_some_and(|message| message.contains(words)), "{outcome}");
}

/// Makes the calls of the server that shows everything.
pub fn call_everything(scene: &Scene) {
    assert_eq!(scene.text("everything_echo", &json!({"message": "grüezi"})), "Echo: grüezi");
    assert_eq!(scene.text("everything_get-sum", &json!({"a": 2, "b": 40})), "The sum of 2 and 40 is 42.");
    let weather = scene.call("everything_get-structured-content", &json!({"location": "Chicago"}));
    assert_eq!(weather["data"], json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}), "{weather}");
    let image = scene.call("everything_get-tiny-image", &json!({}));
    assert_eq!(image["metadata"]["content"][1]["mimeType"], "image/png", "{image}");
    assert!(image["text"].as_str().is_some_and(|text| text.contains("[image image/png, ")), "{image}");
    let links = scene.call("everything_get-resource-links", &json!({"count": 2}));
    assert_eq!(links["metadata"]["content"][2]["uri"], "demo://resource/dynamic/text/2", "{links}");
    let slow = json!({"duration": 0.3, "steps": 3});
    assert_eq!(
        scene.text("everything_trigger-long-running-operation", &slow),
        "Long running operation completed. Duration: 0.3 seconds, Steps: 3."
    );
    let wrong = json!({"resourceType": "Text", "resourceId": 0.5});
    expect_failure(scene, "everything_get-resource-reference", &wrong, "failed", "Invalid resourceId: 0.5");
    expect_failure(scene, "everything_get-sum", &json!({"a": "x", "b": 2}), "invalid_parameters", "/a");
}

pub const EVERYTHING: [&str; 5] =
    ["echo", "get-sum", "get-structured-content", "trigger-long-running-operation", "trigger-elicitation-request"];

#[test]
fn the_server_that_shows_everything_shows_it_through_helve() {
    let Some(peers) = Peers::find("the_server_that_shows_everything_shows_it_through_helve") else { return };
    let scene = Scene::new(&[]).with("everything", program(&peers.everything("stdio"))).agreed();
    expect_server(&scene, "everything", OLDER, &EVERYTHING);
    let notes = scene.connected("everything")["notes"].to_string();
    assert!(notes.contains("simulate-research-query is ignored"), "what cannot be called is told: {notes}");
    call_everything(&scene);
}

#[test]
fn files_are_written_and_read_in_their_folder_and_nowhere_else() {
    let Some(peers) = Peers::find("files_are_written_and_read_in_their_folder_and_nowhere_else") else { return };
    let (inside, outside) = (folder(), folder());
    let inside = inside.path().canonicalize().expect("a path");
    let scene = Scene::new(&[]).with("files", program(&peers.filesystem(&inside.to_string_lossy()))).agreed();
    expect_server(&scene, "files", OLDER, &["read_text_file", "write_file", "list_directory"]);
    let (file, far) = (inside.join("note.txt"), outside.path().join("note.txt"));
    scene.text("files_write_file", &json!({"path": file, "content": "from Helve"}));
    assert_eq!(fs::read_to_string(&file).expect("a file"), "from Helve");
    let read = scene.call("files_read_text_file", &json!({"path": file}));
    assert_eq!((&read["text"], &read["data"]), (&json!("from Helve"), &json!({"content": "from Helve"})), "{read}");
    expect_failure(&scene, "files_write_file", &json!({"path": far, "content": "x"}), "failed", "outside allowed directories");
    assert!(!far.exists());
}

/// Also without the word of a person: the server says that writing destroys, so the call waits.
#[test]
fn a_tool_that_destroys_waits_for_a_person() {
    let Some(peers) = Peers::find("a_tool_that_destroys_waits_for_a_person") else { return };
    let inside = folder();
    let scene = Scene::new(&[]).with("files", program(&peers.filesystem(&inside.path().to_string_lossy()))).agreed();
    let file = inside.path().join("note.txt");
    let arguments = json!({"path": file, "content": "x"}).to_string();
    let waiting = scene.project.run(&["tools", "call", "--json", "files_write_file", &arguments]);
    assert_eq!(waiting.status.code(), Some(3), "{waiting:?}");
    assert!(!file.exists());
}

#[test]
fn what_is_remembered_is_found_again() {
    let Some(peers) = Peers::find("what_is_remembered_is_found_again") else { return };
    let home = folder();
    let kept = home.path().join("memory.json");
    let file = json!({"command": peers.memory(), "trusted": true, "env": [format!("MEMORY_FILE_PATH={}", kept.display())]});
    let scene = Scene::new(&[]).with("memory", file).agreed();
    expect_server(&scene, "memory", OLDER, &["create_entities", "read_graph", "search_nodes"]);
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["writes programs"]});
    scene.text("memory_create_entities", &json!({"entities": [ada]}));
    assert!(fs::read_to_string(&kept).expect("a file").contains("writes programs"));
    let found = scene.call("memory_search_nodes", &json!({"query": "programs"}));
    assert_eq!(found["data"]["entities"], json!([ada]), "{found}");
}

#[test]
fn a_thought_is_counted() {
    let Some(peers) = Peers::find("a_thought_is_counted") else { return };
    let scene = Scene::new(&[]).with("thinking", program(&peers.sequential_thinking())).agreed();
    expect_server(&scene, "thinking", OLDER, &["sequentialthinking"]);
    let thought = json!({"thought": "first this", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2});
    let counted = scene.call("thinking_sequentialthinking", &thought);
    assert_eq!(counted["data"]["thoughtHistoryLength"], 1, "{counted}");
}

#[test]
fn a_repository_is_looked_at_and_changed() {
    let Some(peers) = Peers::find("a_repository_is_looked_at_and_changed") else { return };
    let home = folder();
    let path = home.path().canonicalize().expect("a path");
    let git = |arguments: &[&str]| Command::new("git").current_dir(&path).args(arguments).output().expect("git runs");
    assert!(git(&["init", "--quiet"]).status.success());
    fs::write(path.join("new.txt"), "new").expect("a file");
    let server = peers.python_server("git", &["--repository", &path.to_string_lossy()]);
    let scene = Scene::new(&[]).with("git", program(&server)).agreed();
    expect_server(&scene, "git", NEWER, &["git_status", "git_add", "git_commit"]);
    let status = scene.text("git_git_status", &json!({"repo_path": path}));
    assert!(status.contains("Untracked files") && status.contains("new.txt"), "{status}");
    scene.text("git_git_add", &json!({"repo_path": path, "files": ["new.txt"]}));
    assert_eq!(git(&["diff", "--cached", "--name-only"]).stdout, b"new.txt\n");
    expect_failure(&scene, "git_git_status", &json!({"repo_path": "/"}), "failed", "outside the allowed repository");
}

#[test]
fn noon_in_one_place_is_evening_in_another() {
    let Some(peers) = Peers::find("noon_in_one_place_is_evening_in_another") else { return };
    let scene = Scene::new(&[]).with("time", program(&peers.time())).agreed();
    expect_server(&scene, "time", NEWER, &["get_current_time", "convert_time"]);
    let arguments = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Shanghai"});
    let converted = scene.call("time_convert_time", &arguments);
    assert_eq!(converted["data"]["time_difference"], "+8.0h", "{converted}");
    assert!(converted["data"]["target"]["datetime"].as_str().is_some_and(|time| time.contains("T20:00:00+08:00")), "{converted}");
    let nowhere = json!({"source_timezone": "Nowhere/Else", "time": "12:00", "target_timezone": "UTC"});
    expect_failure(&scene, "time_convert_time", &nowhere, "failed", "Invalid timezone");
}

#[test]
fn a_page_is_fetched() {
    let Some(peers) = Peers::find("a_page_is_fetched") else { return };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/page", listener.local_addr().expect("an address"));
    // It ends with the test.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            // Pages of HTML are read by a script that the server would fetch first.
            let body = "The page says hello.";
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all((head + body).as_bytes());
        }
    });
    let server = peers.python_server("fetch", &["--ignore-robots-txt", "--allow-private-ips"]);
    let scene = Scene::new(&[]).with("fetch", program(&server)).agreed();
    expect_server(&scene, "fetch", NEWER, &["fetch"]);
    let page = scene.text("fetch_fetch", &json!({"url": address}));
    assert!(page.contains("The page says hello."), "{page}");
}
