//! A login at a server, through the binary, with a test that plays the person's browser. The server and whoever gives out its tokens are
//! one small program here.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

use crate::folder::{echo, stderr, stdout};
use crate::running::Running;
use crate::scene::Scene;

const TOKEN: &str = "token-that-nobody-else-may-see";

/// A request as it came.
struct Request {
    line: String,
    authorization: String,
    body: String,
}

impl Request {
    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let (mut line, mut authorization, mut length) = (String::new(), String::new(), 0);
        reader.read_line(&mut line).ok()?;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            match header.trim().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("authorization") => value.clone_into(&mut authorization),
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().ok()?,
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        Some(Self { line, authorization, body: String::from_utf8(body).ok()? })
    }
}

/// Starts the server; gives its address.
fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let own = base.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if let Some(request) = Request::read(&stream) {
                let (status, headers, body) = answer(&own, &request);
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n", body.len());
                let _ = stream.write_all((head + &body).as_bytes());
            }
        }
    });
    base
}

fn answer(base: &str, request: &Request) -> (&'static str, String, String) {
    let json = |value: Value| ("200 OK", "content-type: application/json\r\n".to_owned(), value.to_string());
    let path = request.line.split(' ').nth(1).unwrap_or_default();
    match path.split('?').next().unwrap_or_default() {
        "/.well-known/oauth-protected-resource" | "/.well-known/oauth-protected-resource/mcp" => {
            json(json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
        }
        "/.well-known/oauth-authorization-server" => json(json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"), "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"), "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"], "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"]
        })),
        "/register" => {
            let mut client: Value = serde_json::from_str(&request.body).expect("a registration");
            client["client_id"] = json!("helve-here");
            let (_, headers, body) = json(client);
            ("201 Created", headers, body)
        }
        "/authorize" => {
            let wanted =
                |name: &str| path.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default();
            let back = wanted("redirect_uri").replace("%3A", ":").replace("%2F", "/");
            ("302 Found", format!("location: {back}?code=once&state={}\r\n", wanted("state")), String::new())
        }
        "/token" if request.body.contains("code=once") && request.body.contains("code_verifier=") => {
            json(json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}))
        }
        "/mcp" if request.authorization == format!("Bearer {TOKEN}") => {
            mcp(&request.body).map_or_else(|| ("400 Bad Request", String::new(), String::new()), json)
        }
        "/mcp" => {
            let metadata = format!("{base}/.well-known/oauth-protected-resource/mcp");
            ("401 Unauthorized", format!("www-authenticate: Bearer resource_metadata=\"{metadata}\"\r\n"), String::new())
        }
        _ => ("404 Not Found", String::new(), String::new()),
    }
}

fn mcp(body: &str) -> Option<Value> {
    let request: Value = serde_json::from_str(body).ok()?;
    let result = match request["method"].as_str()? {
        "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
        "tools/list" => json!({"tools": [{"name": "whoami", "description": "Says who asks.", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "you"}]}),
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

/// Visits an address as a browser does; gives where it is sent on.
fn visit(url: &str) -> Option<String> {
    let (host, path) = url.strip_prefix("http://").expect("http").split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("someone listens");
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.lines().find_map(|line| line.strip_prefix("location: ")).map(str::to_owned)
}

#[test]
fn a_person_logs_in_and_out() {
    let base = start();
    let scene = Scene::new(&[]).with("club", json!({"url": format!("{base}/mcp"), "trusted": true}));
    scene.trust();
    let list = scene.project.run(&["mcp", "list"]);
    assert!(stderr(&list).contains("helve mcp login club"), "{}{}", stdout(&list), stderr(&list));

    // No browser is on the path, so the address is all that a person has.
    let mut login = Running::start(scene.project.command(&["mcp", "login", "club"]).env("PATH", "/nowhere"));
    let address = format!("{base}/authorize{}", login.wait_for(&format!("{base}/authorize"), "\n").trim());
    let back = visit(&address).expect("sent back");
    visit(&back);
    let (status, said, noted) = login.finish();
    assert!(status.success() && said.contains("logged in"), "{said}{noted}");
    assert!(!said.contains(TOKEN) && !noted.contains(TOKEN));
    let kept = scene.project.state.path().join("helve/mcp-logins.json");
    assert!(fs::read_to_string(&kept).expect("a file").contains(TOKEN));

    let agreed = scene.project.run(&["mcp", "approve", "--yes"]);
    assert!(agreed.status.success(), "{}", stderr(&agreed));
    assert_eq!(scene.text("club_whoami", &json!({})), "you");

    let again = scene.project.run(&["mcp", "login", "club"]);
    assert!(stdout(&again).contains("no login needed"), "{}", stdout(&again));
    let out = scene.project.run(&["mcp", "login", "club", "--forget"]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert!(!fs::read_to_string(&kept).expect("a file").contains(TOKEN));
    assert_eq!(scene.call("club_whoami", &json!({}))["success"], json!(false));
}

#[test]
fn a_server_that_is_removed_leaves_nothing_behind() {
    let base = start();
    let scene = Scene::new(&[("tools/builtin/quick.yaml", &echo("quick"))])
        .with("club", json!({"url": format!("{base}/mcp"), "headers": {"authorization": format!("Bearer {TOKEN}")}}));
    let scene = scene.agreed();
    let pins = scene.project.state.path().join("helve/mcp-pins.json");
    assert!(fs::read_to_string(&pins).expect("a file").contains("whoami"));
    let unknown = scene.project.run(&["mcp", "remove", "clubs"]);
    assert!(unknown.status.code() == Some(1) && stderr(&unknown).contains("did you mean `club`?"), "{}", stderr(&unknown));
    let removed = scene.project.json(&["mcp", "remove", "club", "--json"]);
    assert_eq!(removed, json!({"server": "club", "file": "tools/mcp/club.yaml"}));
    assert!(!scene.project.folder.path().join("tools/mcp/club.yaml").exists());
    assert!(!fs::read_to_string(&pins).expect("a file").contains("whoami"));
    let trust = scene.project.json(&["trust", "--json"]);
    assert_eq!((&trust["trusted"], &trust["message"]), (&json!(true), &json!("already trusted")), "the rest is as it was: {trust}");
}

#[test]
fn what_a_removed_server_hid_was_shown_before_it_is_trusted() {
    let scene = Scene::new(&[("tools/mcp/z.yaml", "name: clock\ncommand: [sh, evil.sh]\n"), ("evil.sh", "touch ran\n")]);
    let scene = scene.with("clock", json!({"command": ["true"]}));
    assert!(stderr(&scene.project.run(&["trust"])).contains("evil.sh"), "it would run as soon as the other is gone");
    scene.trust();
    scene.project.write("evil.sh", b"touch ran; touch more\n");
    let removed = scene.project.run(&["mcp", "remove", "clock"]);
    assert!(removed.status.success(), "{}", stderr(&removed));
    scene.project.run(&["mcp", "list"]);
    assert!(!scene.project.folder.path().join("ran").exists(), "nobody was shown this");
}
