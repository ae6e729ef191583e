//! A server for tests, and a source that is connected to it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use futures_util::future::BoxFuture;
use helve_core::{DynTool, SourceState, ToolSource};
use helve_mcp::server::{Backend, ClientRequest, Server, ServerInfo, ServerOptions};
use helve_mcp::{Change, McpDefinition, McpOptions, McpSource};
use helve_mcp_wire::{CODES, Era, RpcError};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

/// What a test sees of the server, and changes about it.
pub struct Stage {
    pub tools: Mutex<Vec<Value>>,
    changes: broadcast::Sender<Change>,
    pub cancelled: Notify,
    pub began: Notify,
    /// The requests that came, with the era in which they did.
    pub seen: Mutex<Vec<(Era, String, Value)>>,
    /// What a client answered between its calls.
    pub heard: Mutex<Option<Result<Value, RpcError>>>,
    own: Weak<Stage>,
}

pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}})
}

impl Stage {
    pub fn set_tools(&self, names: &[&str]) {
        *self.tools.lock().unwrap() = names.iter().map(|name| tool(name)).collect();
        self.set_tools_changed();
    }

    pub fn set_tools_changed(&self) {
        let _ = self.changes.send(Change::Tools);
    }

    async fn call(&self, request: &ClientRequest) -> Result<Value, RpcError> {
        let text = |text: &str| Ok(json!({"content": [{"type": "text", "text": text}]}));
        match request.params["name"].as_str().unwrap_or_default() {
            "echo" => Ok(json!({"content": [{"type": "text", "text": request.params["arguments"].to_string()}]})),
            "slow" => {
                self.began.notify_one();
                request.cancel.cancelled().await;
                self.cancelled.notify_one();
                text("too late")
            }
            "progress" => {
                let token = &request.from.progress_token;
                request
                    .from
                    .channel
                    .notify("notifications/progress", json!({"progressToken": token, "progress": 1, "total": 4, "message": "a quarter"}));
                text("done")
            }
            "ask" => self.ask(request).await,
            "takes-back" => {
                let asking = request.from.channel.ask("elicitation/create", json!({"message": "Who?"}));
                tokio::select! {
                    answer = asking => answer,
                    () = self.began.notified() => text("never mind"),
                }
            }
            "later" => {
                // When the call is over, and between two others.
                let (between, over, stage) = (request.from.between.clone().unwrap(), request.cancel.clone(), self.own.upgrade().unwrap());
                tokio::spawn(async move {
                    over.cancelled().await;
                    between.notify("notifications/message", json!({"level": "info", "data": "by the way"}));
                    let answer = between.ask("elicitation/create", json!({"message": "Still there?"})).await;
                    *stage.heard.lock().unwrap() = Some(answer);
                    stage.began.notify_one();
                });
                text("done")
            }
            "fails" => Ok(json!({"isError": true, "content": [{"type": "text", "text": "the disk is full"}]})),
            _ => Err(RpcError { code: CODES.params, message: "unknown tool".to_owned(), data: Some(json!({"known": ["echo"]})) }),
        }
    }

    /// Asks for a name, in the words of the era.
    async fn ask(&self, request: &ClientRequest) -> Result<Value, RpcError> {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "polite": {"type": "boolean", "default": true}}});
        let params = json!({"message": "Who?", "requestedSchema": schema});
        let answer = if request.from.era == Era::Legacy {
            // A call that is over answers its own questions.
            let answer = request.from.channel.ask("elicitation/create", params).await.unwrap_or_else(|_| json!({"action": "cancel"}));
            if answer["action"] == "cancel" {
                self.cancelled.notify_one();
            }
            let progress = json!({"progressToken": request.from.progress_token, "progress": 1, "message": "thank you"});
            request.from.channel.notify("notifications/progress", progress);
            answer
        } else {
            match request.params.pointer("/inputResponses/who") {
                Some(answer) if request.params["requestState"] == "half" => answer.clone(),
                _ => {
                    let asked = json!({"who": {"method": "elicitation/create", "params": params}});
                    return Ok(json!({"resultType": "input_required", "inputRequests": asked, "requestState": "half"}));
                }
            }
        };
        Ok(json!({"content": [{"type": "text", "text": answer.to_string()}]}))
    }
}

struct Served(Arc<Stage>);

impl Backend for Served {
    fn about(&self) -> ServerInfo {
        ServerInfo { name: "stage".to_owned(), version: "1".to_owned(), instructions: Some("Be kind.".to_owned()) }
    }

    fn capabilities(&self, _: Era) -> Value {
        json!({"tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}, "prompts": {}})
    }

    fn handle(&self, request: ClientRequest) -> BoxFuture<'_, Result<Value, RpcError>> {
        Box::pin(async move {
            self.0.seen.lock().unwrap().push((request.from.era, request.method.clone(), request.params.clone()));
            match request.method.as_str() {
                "tools/list" => Ok(json!({"tools": *self.0.tools.lock().unwrap()})),
                "tools/call" => self.0.call(&request).await,
                "prompts/list" => Ok(json!({"prompts": [{"name": "greet"}]})),
                "prompts/get" => Ok(json!({"messages": [], "description": request.params["name"]})),
                "resources/list" => Ok(json!({"resources": [{"uri": "a://b", "name": "b"}]})),
                "resources/read" if request.params["uri"] == "a://b" => Ok(json!({"contents": [{"uri": "a://b", "text": "hello"}]})),
                "resources/read" => Err(RpcError { code: CODES.params, message: "no such resource".to_owned(), data: None }),
                "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => Ok(json!({})),
                other => Err(RpcError { code: CODES.method, message: other.to_owned(), data: None }),
            }
        })
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.0.changes.subscribe()
    }
}

/// A server that listens, until it is stopped.
pub struct Running {
    pub stage: Arc<Stage>,
    pub url: String,
    pub stop: CancellationToken,
}

pub async fn serve(tools: &[&str]) -> Running {
    serve_at("127.0.0.1:0", tools).await
}

pub async fn serve_at(address: &str, tools: &[&str]) -> Running {
    let stage = Arc::new_cyclic(|own| Stage {
        tools: Mutex::new(tools.iter().map(|name| tool(name)).collect()),
        changes: broadcast::Sender::new(16),
        cancelled: Notify::new(),
        began: Notify::new(),
        seen: Mutex::default(),
        heard: Mutex::default(),
        own: own.clone(),
    });
    let listener = TcpListener::bind(address).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (server, stop) = (Server::new(Arc::new(Served(stage.clone())), ServerOptions::default()), CancellationToken::new());
    let stopped = stop.clone();
    tokio::spawn(async move { server.listen(listener, stopped).await });
    Running { stage, url, stop }
}

impl Running {
    /// Puts something between that counts the connections.
    pub async fn count_connections(&mut self) -> Arc<AtomicUsize> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let behind = self.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        self.url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let counted = Arc::new(AtomicUsize::new(0));
        let count = counted.clone();
        tokio::spawn(async move {
            while let Ok((mut front, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let mut back = TcpStream::connect(&behind).await.unwrap();
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut front, &mut back).await });
            }
        });
        counted
    }

    /// A source of this server, connected. `fields` are those of its file.
    pub async fn source(&self, fields: Value, options: McpOptions) -> Arc<McpSource> {
        let mut definition = json!({"name": "stage", "url": self.url, "prefix": "", "trusted": true});
        definition.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let definition: McpDefinition = serde_json::from_value(definition).unwrap();
        let source = McpSource::connect(&definition, std::path::Path::new("."), &options).unwrap();
        source.settled().await;
        source
    }
}

/// The tools that a source offers now.
pub fn tools(source: &McpSource) -> Vec<Arc<dyn DynTool>> {
    match &*source.tools().borrow() {
        SourceState::Ready(list) => list.as_slice().to_vec(),
        SourceState::Connecting => panic!("still connecting"),
        SourceState::Failed(why) => panic!("{why}"),
    }
}

pub fn names(source: &McpSource) -> Vec<String> {
    tools(source).iter().map(|tool| tool.spec().name().to_string()).collect()
}

pub fn find(source: &McpSource, name: &str) -> Arc<dyn DynTool> {
    tools(source).into_iter().find(|tool| **tool.spec().name() == *name).expect("the tool")
}

/// Waits until a source offers exactly these tools.
pub async fn wait_for(source: &McpSource, wanted: &[&str]) {
    let mut state = source.tools();
    loop {
        if let SourceState::Ready(list) = &*state.borrow_and_update()
            && list.as_slice().iter().map(|tool| tool.spec().name().to_string()).collect::<Vec<_>>() == wanted
        {
            return;
        }
        state.changed().await.unwrap();
    }
}
