//! Helve's MCP client, driven by the official conformance suite: it connects to the address it is given, and does what the scenario in its
//! environment asks for. Logins are made by a "browser" that follows the first redirect by itself.

use std::process::ExitCode;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynTool, InputResponse, SourceState, ToolCall, ToolSource};
use helve_fetch::Url;
use helve_mcp::login::Browser;
use helve_mcp::server::ClientRequest;
use helve_mcp::{BackChannel, Downstream, Gateway, McpDefinition, McpOptions, McpSource};
use helve_mcp_wire::{CODES, Era, RpcError};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where the suite says a document about the client is.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// A person never answers more often in a row.
const MAX_ANSWERS: usize = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let setting = |name: &str| std::env::var(format!("MCP_CONFORMANCE_{name}")).unwrap_or_default();
    let (scenario, context) = (setting("SCENARIO"), serde_json::from_str(&setting("CONTEXT")).unwrap_or_default());
    match run(&scenario, &context).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // The suite keeps what is said here beside its own findings.
            let _ = tokio::io::stderr().write_all(format!("{scenario}: {why}\n").as_bytes()).await;
            ExitCode::FAILURE
        }
    }
}

async fn run(scenario: &str, context: &Value) -> Result<(), String> {
    let url = std::env::args().nth(1).ok_or("the address is missing")?;
    let mut definition = json!({"name": "suite", "url": url, "prefix": "", "trusted": true});
    if let (Some(id), Some(issuer)) = (context["client_id"].as_str(), context["issuer"].as_str()) {
        definition["oauth"] = json!({"client_id": id, "client_secret": context["client_secret"], "issuer": issuer});
    }
    let definition: McpDefinition = serde_json::from_value(definition).map_err(|error| error.to_string())?;
    let options = McpOptions {
        browser: Some(Arc::new(Person)),
        client_document: (scenario == "auth/basic-cimd").then(|| DOCUMENT.to_owned()),
        ..McpOptions::default()
    };
    let source = McpSource::connect(&definition, std::path::Path::new("."), &options).map_err(|error| error.to_string())?;
    source.settled().await;
    let tools = match &*source.tools().borrow() {
        SourceState::Ready(tools) => tools.as_slice().to_vec(),
        SourceState::Failed(why) => return Err(why.to_string()),
        SourceState::Connecting => return Err("it is still connecting".to_owned()),
    };
    for (tool, arguments) in calls(scenario, context, &tools) {
        call(&tool, arguments).await?;
    }
    if scenario == "http-standard-headers" {
        look_around(&source).await?;
    }
    Ok(())
}

/// What a scenario wants to be called, with what.
fn calls(scenario: &str, context: &Value, tools: &[Arc<dyn DynTool>]) -> Vec<(Arc<dyn DynTool>, Value)> {
    let find = |name: &str| tools.iter().find(|tool| **tool.spec().name() == *name).cloned();
    if let Some(wanted) = context["toolCalls"].as_array() {
        let wanted = wanted.iter().filter_map(|call| Some((find(call["name"].as_str()?)?, call["arguments"].clone())));
        return wanted.collect();
    }
    let arguments = |tool: &dyn DynTool| match &**tool.spec().name() {
        "add_numbers" => json!({"a": 5, "b": 3}),
        // The suite compares what the client has read with what it was sent.
        "json_schema_echo" => json!({"schema": find("json_schema_2020_12_tool").map(|tool| tool.spec().input().value().clone())}),
        _ => json!({}),
    };
    let only = match scenario {
        "http-invalid-tool-headers" => Some("valid_tool"),
        "json-schema-2020-12-preservation" => Some("json_schema_echo"),
        _ => None,
    };
    let wanted = tools.iter().filter(|tool| only.is_none_or(|only| **tool.spec().name() == *only));
    wanted.map(|tool| (tool.clone(), arguments(&**tool))).collect()
}

/// Calls a tool, and says yes to whatever it asks.
async fn call(tool: &Arc<dyn DynTool>, arguments: Value) -> Result<(), String> {
    let call = ToolCall::new(tool.spec().name().clone(), arguments);
    let mut given: Option<InputResponse> = None;
    for _ in 0..MAX_ANSWERS {
        let cx = CallContext::default().asking().with_given(given.take());
        match tool.call(&call, &cx).await {
            Ok(_) => return Ok(()),
            Err(error) => match error.input() {
                Some(needed) => given = Some(needed.give(&json!({"confirmed": true, "confirm": true, "name": "Ada"}))),
                None => return Err(error.to_string()),
            },
        }
    }
    Err("it asks again and again".to_owned())
}

/// Reads a resource and a prompt, as a client behind Helve would.
async fn look_around(source: &Arc<McpSource>) -> Result<(), String> {
    let gateway = Gateway::new(vec![source.clone()]);
    let ask = |method: &str, params: Value| {
        let from = Downstream {
            era: Era::Modern,
            session: None,
            capabilities: Arc::new(json!({})),
            client: None,
            log_level: None,
            progress_token: None,
            channel: Arc::new(Nobody),
            between: None,
        };
        ClientRequest { method: method.to_owned(), params, from, cancel: tokio_util::sync::CancellationToken::new() }
    };
    for (list, field, read, key) in
        [("resources/list", "resources", "resources/read", "uri"), ("prompts/list", "prompts", "prompts/get", "name")]
    {
        let Some(Ok(found)) = gateway.handle(&ask(list, json!({}))).await else { continue };
        for item in found[field].as_array().into_iter().flatten() {
            let _ = gateway.handle(&ask(read, json!({key: item[key]}))).await;
        }
    }
    Ok(())
}

/// A client that cannot be asked.
struct Nobody;

impl BackChannel for Nobody {
    fn notify(&self, _: &str, _: Value) {}

    fn ask(&self, _: &str, _: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        Box::pin(std::future::ready(Err(RpcError { code: CODES.method, message: "nobody".to_owned(), data: None })))
    }
}

/// A person whose browser is sent back at once.
struct Person;

impl Browser for Person {
    fn open<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let answer = get(url).await?;
            let location = answer.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("location")));
            let back = location.map(|(_, value)| value.trim()).ok_or("the browser was not sent back")?;
            get(&back.parse().map_err(|_| "it was sent back to no address")?).await.map(drop)
        })
    }
}

async fn get(url: &Url) -> Result<String, String> {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80));
    let visit = async {
        let mut socket = TcpStream::connect((host, port)).await?;
        let path = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        socket.write_all(format!("GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        socket.take(1 << 20).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    visit.await.map_err(|error| error.to_string())
}
