//! Tools that ask something of the user of a client, through Helve. The server is a program with Helve in it, and a tool of its own.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use helve::mcp::McpServing;
use helve::mcp::server::{Server, ServerOptions};
use helve::tool::{InputNeeded, InputRequest};
use helve::{CancellationToken, Helve, Output, ToolError};
use helve_testkit::{fake, spec};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use crate::client::{Client, user};
use crate::scene::Scene;

/// A server whose tool `greet` asks for a name.
pub struct Greeter {
    url: String,
    stop: CancellationToken,
}

impl Drop for Greeter {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Greeter {
    pub fn start() -> Self {
        let (tell, told) = channel();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serve = async move {
            let helve = Helve::new();
            let greet = fake(spec("greet"), |_, cx| {
                Box::pin(async move {
                    let Some(given) = cx.given() else {
                        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
                        let request = InputRequest { key: "who".into(), message: "Who are you?".into(), schema: Some(schema), url: None };
                        return Err(ToolError::needs_input(InputNeeded::new(vec![request], json!("half way"))));
                    };
                    let name = given.answers.as_ref().and_then(|answers| answers["who"]["name"].as_str());
                    Ok(Output::text(format!("hello {}", name.unwrap_or("nobody"))))
                })
            });
            helve.catalogue().add_source(Arc::new(helve::catalogue::ListSource::new("own", [greet])));
            let server = Server::new(helve.mcp_service(McpServing::default()).expect("a service"), ServerOptions::default());
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            tell.send(format!("http://{}/mcp", listener.local_addr().expect("an address"))).expect("someone waits");
            server.listen(listener, stopped).await.expect("it ends well");
        };
        thread::spawn(move || Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(serve));
        Self { url: told.recv().expect("an address"), stop }
    }

    /// A project that uses the server.
    pub fn scene(&self, trusted: bool) -> Scene {
        Scene::new(&[]).with("greeter", json!({"url": self.url, "trusted": trusted, "include": ["greet"]})).agreed()
    }
}

/// Makes the call as a client of an era does, with a person beside it who approves it once.
fn greet(scene: &Scene, client: &mut Client, approve: bool) -> Value {
    let mut params = json!({"name": "greeter_greet", "arguments": {}});
    let id = client.begin("tools/call", &params);
    if approve {
        scene.approve_what_waits();
    }
    let mut answer = client.answer_to(id);
    if answer["result"]["resultType"] == "input_required" {
        let requests = answer["result"]["inputRequests"].as_object().expect("requests").clone();
        client.asked.extend(requests.values().map(|request| request["params"].clone()));
        params["requestState"] = answer["result"]["requestState"].clone();
        params["inputResponses"] = requests.keys().map(|key| (key.clone(), user())).collect();
        answer = client.ask("tools/call", &params);
    }
    answer["result"].clone()
}

#[test]
fn what_a_tool_asks_reaches_the_user_of_a_client_in_either_era() {
    let greeter = Greeter::start();
    for trusted in [true, false] {
        let scene = greeter.scene(trusted);
        for options in [&[][..], &["--gateway"]] {
            for modern in [true, false] {
                let case = format!("trusted {trusted}, options {options:?}, modern {modern}");
                let mut client = Client::with_user(&scene.project, options, modern);
                let result = greet(&scene, &mut client, !trusted);
                assert_eq!(result["content"][0]["text"], "hello Ada", "{case}: {result}");
                assert_eq!(client.asked.len(), 1, "{case}");
                assert_eq!(client.asked[0]["message"], "Who are you?", "{case}");
            }
        }
        let tasks = scene.project.json(&["tasks", "--json"])["tasks"].as_array().expect("a list").clone();
        assert_eq!(tasks.len(), if trusted { 0 } else { 4 });
        assert!(tasks.iter().all(|task| task["state"] == "done"), "as they ended, and not as they asked: {tasks:?}");
    }
}

#[test]
fn a_client_that_cannot_ask_its_user_is_told_what_was_asked() {
    let greeter = Greeter::start();
    let scene = greeter.scene(true);
    let result = greet(&scene, &mut Client::of(&scene.project, &[]), false);
    assert_eq!(result["isError"], json!(true), "{result}");
    assert!(result["content"][0]["text"].as_str().is_some_and(|text| text.contains("Who are you?")), "{result}");
}

#[test]
fn an_answer_is_for_the_request_that_asked() {
    let greeter = Greeter::start();
    let scene = greeter.scene(true);
    let mut client = Client::with_user(&scene.project, &[], true);
    let asked = client.ask("tools/call", &json!({"name": "greeter_greet", "arguments": {}}));
    let state = &asked["result"]["requestState"];
    let answers = json!({"who": user()});
    let other = json!({"name": "greeter_greet", "arguments": {"other": 1}, "requestState": state, "inputResponses": answers});
    assert_eq!(client.ask("tools/call", &other)["error"]["code"], json!(-32602), "another call");
    let same = json!({"name": "greeter_greet", "arguments": {}, "requestState": state, "inputResponses": {"who": {"action": "decline"}}});
    let declined = client.ask("tools/call", &same);
    assert_eq!(declined["result"]["content"][0]["text"], "hello nobody", "{declined}");
    assert_eq!(client.ask("tools/call", &same)["error"]["code"], json!(-32602), "once");
}
