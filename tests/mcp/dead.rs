//! Servers that do not work: what they cost, and who hears of it.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::folder::{Project, echo, stderr};
use crate::pins::second;
use crate::running::until;
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
    for word in ["`mcp:absent` is unavailable", "`mcp:silent` is unavailable: still connecting", "`mcp:nobody` is unavailable"] {
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

/// A server that neither answers nor ends, and a Helve that is told to end while it waits for it.
#[test]
fn a_helve_that_is_told_to_end_leaves_no_server_behind() {
    let project = Project::new(&[("tools/mcp/deaf.yaml", "name: deaf\ncommand: [sh, -c, 'echo $$ > pid; exec sleep 1000']\n")]);
    assert!(project.run(&["trust", "--yes"]).status.success());
    for (signal, status) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
        let pid = project.folder.path().join("pid");
        let _ = fs::remove_file(&pid);
        let mut helve = project.command(&["mcp", "list"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("helve runs");
        let deaf = until("the server has begun", || fs::read_to_string(&pid).ok().filter(|pid| pid.ends_with('\n')));
        let told = Command::new("kill").args([format!("-{signal}"), helve.id().to_string()]).status().expect("kill");
        assert!(told.success());
        assert_eq!(helve.wait().expect("an end").code(), Some(status), "{signal}");
        let gone = || (!Path::new(&format!("/proc/{}", deaf.trim())).exists()).then_some(());
        until("the server is gone", gone);
    }
}

/// A call waits for a person, and whoever serves it does not.
#[test]
fn ctrl_c_says_what_it_waits_for_and_the_second_one_waits_for_nothing() {
    let tool = format!("{}permission: confirm\n", echo("wipe"));
    let scene = Scene::new(&[("tools/builtin/wipe.yaml", &tool)]);
    scene.trust();
    let (mut server, address) = scene.serve(&[]);
    let host = address.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let about = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wipe", "arguments": {"text": "a"}, "_meta": about}});
    let (call, mut stream) = (call.to_string(), TcpStream::connect(&host).expect("it listens"));
    let headers = "content-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: wipe";
    write!(stream, "POST /mcp HTTP/1.1\r\nhost: {host}\r\n{headers}\r\ncontent-length: {}\r\n\r\n{call}", call.len()).expect("it reads");
    until("a question", || {
        let list = scene.project.json(&["approvals", "--json"]);
        list["approvals"].as_array().filter(|open| !open.is_empty()).map(|_| ())
    });
    server.interrupt();
    server.wait_for("Stopping: ", "Ctrl-C again");
    server.interrupt();
    assert_eq!(server.finish().0.code(), Some(130));
}
