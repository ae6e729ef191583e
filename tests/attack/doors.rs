//! Requests, names and values that strangers send to Helve's doors.

#[allow(dead_code, reason = "the tests of MCP use the rest")]
#[path = "../mcp/running.rs"]
pub mod running;
pub mod server;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use helve_testkit::{Call, Reply};
use serde_json::{Value, json};

use self::running::until;
use self::server::{Served, StrangeServer, call};
use crate::folder::{Project, echo, stderr, stdout};
use crate::scene::Scene;

/// A tool that says what number it got.
const NUMBER: (&str, &str) = (
    "tools/builtin/number.yaml",
    "name: number\ndescription: Gives back what it gets.\ncommand: [cat]\nparameters: [{name: n, type: number}]\n",
);
const TWICE: &str = r#"{"n":1,"n":2}"#;
const WIDE: &str = r#"{"n":18446744073709551617}"#;

/// A project that is trusted, so that only rules and doors refuse.
fn trusted(files: &[(&str, &str)]) -> Project {
    let project = Project::new(files);
    let trusted = project.run(&["trust", "--yes"]);
    assert!(trusted.status.success(), "{}", stderr(&trusted));
    project
}

#[test]
fn a_rule_for_a_number_holds_however_it_is_written() {
    let rules = "permissions:\n  - {tool: number, when: {n: \"1\"}, permission: deny}\n  - {tool: number, when: {n: \"100000000000000000000\"}, permission: deny}\n";
    let project = trusted(&[("helve.yaml", rules), NUMBER]);
    let call = |arguments: &str| project.json(&["tools", "call", "number", arguments, "--yes", "--json"]);
    for spelling in ["1", "1.0", "1e0", "10e-1", "\"1\"", "\"1.0\"", "1e20", "100000000000000000000.0"] {
        let outcome = call(&format!("{{\"n\": {spelling}}}"));
        assert_eq!(outcome["error"]["kind"], "permission_denied", "{spelling}: {outcome}");
    }
    for spelling in ["2", "1.5", "-1", "1e21"] {
        let outcome = call(&format!("{{\"n\": {spelling}}}"));
        assert_eq!(outcome["success"], true, "{spelling}: {outcome}");
    }
}

#[test]
fn half_heads_lock_nobody_out() {
    let served = Served::start(&trusted(&[]), &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut halves = Vec::new();
        // A few more than there may be connections, so that all of them are made at once where the server takes no more; on a machine
        // that allows fewer, as many as there can be.
        for _ in 0..4_040 {
            let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
            socket.bind(SocketAddr::from(([127, 0, 0, 2], 0))).expect("an address");
            let Ok(mut stream) = socket.connect(served.address).await else { break };
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"POST /mcp HTTP/1.1\r\nhost: loc").await;
            halves.push(stream);
        }
        // Room for those who follow, where the limit was that of this process.
        halves.truncate(halves.len().saturating_sub(16));
        for last in [1, 2, 3] {
            let (status, _) = served.send_from(last, "GET /elsewhere HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
            assert_eq!(status, "404", "127.0.0.{last} with {} half heads", halves.len());
        }
        // One client has a quarter of the connections that wait, and no more.
        let is_open = |stream: tokio::net::TcpStream| {
            let read = stream.into_std().and_then(|mut stream| stream.read(&mut [0]));
            read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        };
        let open = halves.into_iter().map(is_open).filter(|open| *open).count();
        assert!(open <= 1_000, "{open} half heads are open");
    });
}

#[test]
fn one_client_leaves_places_for_others() {
    // Whoever calls it waits: nobody answers at this address.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let tool = format!("name: wait\ndescription: Waits.\napi_url: \"http://{}/\"\n", silent.local_addr().expect("an address"));
    let served = Served::start(&trusted(&[("tools/native/wait.yaml", &tool)]), &[]);
    let mut held: Vec<_> = (0..300)
        .map(|_| {
            let mut stream = served.connect(1);
            stream.write_all(call("greedy", "wait", "{}").as_bytes()).expect("a request");
            stream.set_nonblocking(true).expect("not blocking");
            stream
        })
        .collect();
    let refused = until("a refusal", || {
        held.iter_mut().find_map(|stream| {
            let mut answer = [0; 4096];
            let count = stream.read(&mut answer).ok()?;
            Some(String::from_utf8_lossy(&answer[..count]).to_ascii_lowercase())
        })
    });
    assert!(refused.starts_with("http/1.1 429 ") && refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
    for (client, last) in [("other", 1), ("greedy", 2)] {
        let (status, answer) = served.send_from(last, &call(client, "calculate", r#"{"expression":"6*7"}"#));
        assert!(status == "200" && answer.contains("42"), "{client} at 127.0.0.{last}: {status} {answer}");
    }
}

#[test]
fn a_request_with_two_ends_is_refused() {
    let served = Served::start(&trusted(&[]), &[]);
    let (length, encoding) = ("content-length: 4\r\n", "transfer-encoding: chunked\r\n");
    for headers in [format!("{length}{encoding}"), format!("{encoding}{length}")] {
        let hidden = "0\r\n\r\nGET /elsewhere HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let (status, answer) = served.send_from(1, &format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n{hidden}"));
        assert_eq!((status.as_str(), answer.matches("HTTP/1.1").count()), ("400", 1), "{headers}: {answer}");
    }
}

#[test]
fn arguments_with_two_readings_are_refused_over_mcp() {
    let project = trusted(&[NUMBER]);
    let served = Served::start(&project, &[]);
    for arguments in [TWICE, WIDE] {
        let (status, answer) = served.send_from(1, &call("test", "number", arguments));
        assert_eq!(status, "400", "{answer}");
        assert!(answer.contains("-32602") && answer.contains("\"id\":1"), "{answer}");
    }
    let (status, answer) = served.send_from(1, &call("test", "number", r#"{"n":3}"#));
    assert!(status == "200" && answer.contains(r#""structuredContent":{"n":3}"#), "{status} {answer}");
    drop(served);
    let mut child = project.command(&["mcp", "serve", "--stdio"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("helve runs");
    let mut lines = String::new();
    for arguments in [TWICE, WIDE] {
        lines += &server::message(1, "number", arguments, "test");
        lines += "\n";
    }
    lines += r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{}}"#;
    child.stdin.take().expect("stdin").write_all(format!("{lines}\n").as_bytes()).expect("written");
    let output = child.wait_with_output().expect("an end");
    let answers: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let codes: Vec<_> = answers.iter().map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [Some(-32602), Some(-32602), Some(-32600)], "{answers:?}");
}

fn gemini_call(arguments: &str) -> Reply {
    let part = format!(r#"{{"functionCall":{{"name":"number","args":{arguments}}}}}"#);
    let piece = format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{part}]}},"finishReason":"STOP"}}]}}"#);
    Reply::raw(200, "text/event-stream", [format!("data: {piece}\n\n")])
}

#[test]
fn arguments_with_two_readings_are_refused_from_models() {
    let text = |arguments: &str| Reply::text(format!("<tool_call>{{\"name\": \"number\", \"arguments\": {arguments}}}</tool_call>"));
    for arguments in [TWICE, WIDE] {
        for provider in ["openai_compatible", "openai_responses", "anthropic", "gemini"] {
            // Gemini's arguments are no text, so they are written by hand.
            let call = if provider == "gemini" { gemini_call(arguments) } else { Reply::calls([Call::raw("number", arguments)]) };
            let scene = Scene::of(provider, "", [call, Reply::text("Sorry.")]).with(NUMBER.0, NUMBER.1);
            let trusted = scene.project.run(&["trust", "--yes"]);
            assert!(trusted.status.success(), "{}", stderr(&trusted));
            let ran = scene.events(&["go"]);
            let calls = ran.calls();
            assert_eq!(calls.iter().map(|call| call.2.as_str()).collect::<Vec<_>>(), ["invalid_parameters"], "{provider}: {calls:?}");
            assert_eq!(ran.strategies(), [""; 0], "{provider}: it knows how to call");
            let told = scene.told().join(" ");
            assert!(told.contains("appears twice") || told.contains("64 bits"), "{provider}: {told}");
        }
        let scene =
            Scene::of("openai_compatible", "function_calling: false", [text(arguments), Reply::text("Sorry.")]).with(NUMBER.0, NUMBER.1);
        let ran = scene.events(&["go"]);
        assert!(!ran.calls().iter().any(|call| call.2.starts_with('{')), "in text: {:?}", ran.calls());
    }
}

#[test]
fn results_of_servers_with_two_readings_are_refused() {
    let server = StrangeServer::start(&["read"], r#"{"content":[{"type":"text","text":"safe"}],"isError":false,"isError":true}"#);
    let project = trusted(&[("tools/mcp/strange.yaml", &server.file())]);
    assert!(project.run(&["mcp", "approve", "strange", "--yes"]).status.success());
    let outcome = project.json(&["tools", "call", "strange_read", "{}", "--yes", "--json"]);
    assert_eq!(outcome["success"], false, "{outcome}");
    assert!(outcome.to_string().contains("appears twice"), "{outcome}");
}

#[test]
fn names_that_look_like_others_are_pointed_out() {
    let shouting = echo("GET_TIME");
    let server = StrangeServer::start(&["g\u{435}t_time", "get_date"], "{}");
    let project = trusted(&[("tools/builtin/loud.yaml", &shouting), ("tools/mcp/strange.yaml", &server.file())]);
    let waiting = project.json(&["mcp", "approve", "strange", "--json"]);
    let flags = waiting["changes"][0]["flags"].to_string();
    assert!(flags.contains("looks like the tool `get_time`"), "{waiting}");
    assert!(project.run(&["mcp", "approve", "strange", "--yes"]).status.success());
    for arguments in [&["tools", "--json"][..], &["tools", "check", "--json"]] {
        let diagnostics = until("the tools of the server", || {
            let found = project.json(arguments)["diagnostics"].to_string();
            found.contains("strange").then_some(found)
        });
        assert!(diagnostics.contains("`GET_TIME` of `command` looks like `get_time` of `builtin`"), "{diagnostics}");
        assert!(diagnostics.contains(r"`strange_g\\u{435}t_time` of `mcp:strange` looks like `get_time` of `builtin`"), "{diagnostics}");
        assert!(!diagnostics.contains("get_date"), "{diagnostics}");
    }
}

#[test]
fn a_header_is_one_line_whoever_reads_it() {
    let tool =
        "name: send\ndescription: Sends.\napi_url: \"http://127.0.0.1:9/\"\nparameters: [{name: x}]\nheaders: {X-One: \"{{ x }}\"}\n";
    let project = trusted(&[("tools/native/send.yaml", tool)]);
    for character in ['\u{80}', '\u{85}', '\u{9b}', '\u{2028}', '\u{7f}', '\n'] {
        let arguments = json!({"x": format!("a{character}x-evil: 1")}).to_string();
        let outcome = project.json(&["tools", "call", "send", &arguments, "--json"]);
        assert_eq!(outcome["error"]["kind"], "invalid_parameters", "{character:?}: {outcome}");
    }
}

#[test]
fn json_shows_no_characters_that_deceive() {
    let project = trusted(&[("tools/builtin/echo.yaml", &echo("echo"))]);
    let text = "\u{9b}31m\u{202e}\u{200b}\u{e0041}\u{85}\u{7f}\u{feff} é 中 🙂";
    let outputs = [
        project.run(&["tools", "call", "echo", &json!({"text": text}).to_string(), "--json"]),
        Command::new("sh")
            .args(["-c", "printf '%s' \"$1\" | \"$2\" parse --json", "sh", text, env!("CARGO_BIN_EXE_helve")])
            .output()
            .expect("sh runs"),
    ];
    for output in outputs {
        let shown = stdout(&output);
        assert!(!shown.trim_end().contains(helve_core::printable::is_deceptive), "{shown:?} {}", stderr(&output));
        assert!(shown.contains("é 中 🙂"), "{shown}");
        let document: Value = serde_json::from_str(&shown).expect("JSON");
        let said = document.pointer("/data/text").or_else(|| document.pointer("/items/0/text"));
        assert_eq!(said.and_then(Value::as_str), Some(text), "{document}");
    }
}

/// A folder that is not trusted decides neither where the server listens nor by which names it is called.
#[test]
fn the_command_line_alone_opens_the_server_of_an_untrusted_folder() {
    let other = TcpListener::bind("0.0.0.0:0").expect("a port");
    let listen = other.local_addr().expect("an address");
    let project = Project::new(&[("helve.yaml", &format!("allowed_hosts: [\"*\"]\nlisten: {listen}\n"))]);
    // The address of the folder is taken, so that the server would not start if it wanted that one, too.
    let served = Served::start(&project, &[]);
    assert!(served.address.ip().is_loopback() && served.address.port() != listen.port(), "{}", served.address);
    let request = call("x", "calculate", r#"{"expression": "1+1"}"#);
    for (host, status) in [("localhost", "200"), ("evil.example", "403"), ("evil.example:80", "403"), ("*", "403")] {
        let (said, answer) = served.send_from(1, &request.replace("host: localhost", &format!("host: {host}")));
        assert_eq!(said, status, "{host}: {answer}");
    }
}
