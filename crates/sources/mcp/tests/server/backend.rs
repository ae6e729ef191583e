//! A backend for tests: a few tools that do what a test wants to see.

use std::sync::{Arc, Mutex, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use helve_mcp::BackChannel;
use helve_mcp::Change;
use helve_mcp::server::{Backend, ClientRequest, ServerInfo};
use helve_mcp_wire::{CODES, Era, RpcError};
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};

/// What tests look at from outside.
pub struct Stage {
    own: Weak<Self>,
    changes: broadcast::Sender<Change>,
    /// What happened, in order.
    seen: Mutex<Vec<String>>,
    happened: Notify,
}

impl Stage {
    pub fn new() -> Arc<Self> {
        let (changes, seen, happened) = (broadcast::Sender::new(16), Mutex::default(), Notify::new());
        Arc::new_cyclic(|own| Self { own: own.clone(), changes, seen, happened })
    }

    pub fn change(&self, change: Change) {
        let _ = self.changes.send(change);
    }

    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until something happened.
    pub async fn wait_for(&self, what: &str) {
        loop {
            let happened = self.happened.notified();
            if self.seen().iter().any(|seen| seen == what) {
                return;
            }
            happened.await;
        }
    }

    fn see(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
        self.happened.notify_waiters();
    }

    /// Says and asks something when the request is over.
    fn speak_between(&self, request: &ClientRequest) {
        let (between, over, stage) = (request.from.between.clone().unwrap(), request.cancel.clone(), self.own.upgrade());
        tokio::spawn(async move {
            over.cancelled().await;
            for level in ["debug", "error"] {
                between.notify("notifications/message", json!({"level": level, "data": "between"}));
            }
            let answer = between.ask("elicitation/create", json!({"message": "Still there?"})).await;
            stage.unwrap().see(answer.map_or_else(|error| error.message, |answer| answer.to_string()));
        });
    }

    async fn call(&self, request: ClientRequest) -> Result<Value, RpcError> {
        let channel = request.from.channel.clone();
        let log = |level: &str| channel.notify("notifications/message", json!({"level": level, "data": format!("a {level}")}));
        let progress = |progress: u32| {
            if let Some(token) = &request.from.progress_token {
                channel.notify("notifications/progress", json!({"progressToken": token, "progress": progress, "total": 100}));
            }
        };
        match request.params["name"].as_str().unwrap_or_default() {
            "test_simple_text" => Ok(text("This is a simple text response for testing.")),
            "test_error_handling" => {
                Ok(json!({"isError": true, "content": [{"type": "text", "text": "This tool intentionally returns an error for testing"}]}))
            }
            "test_tool_with_logging" => {
                for level in ["debug", "info", "warning"] {
                    log(level);
                }
                Ok(text("logged"))
            }
            "test_logging_tool" => {
                log("emergency");
                Ok(text("logged"))
            }
            "test_tool_with_progress" => {
                [0, 50, 100].into_iter().for_each(progress);
                Ok(text("done"))
            }
            "test_sampling" => {
                let message = json!({"role": "user", "content": {"type": "text", "text": request.params["arguments"]["prompt"]}});
                let answer = channel.ask("sampling/createMessage", json!({"messages": [message], "maxTokens": 100})).await?;
                Ok(text(&format!("LLM response: {}", answer["content"]["text"])))
            }
            "test_elicitation" | "test_streaming_elicitation" => {
                let schema = json!({"type": "object", "properties": {"username": {"type": "string"}, "email": {"type": "string"}}});
                if request.from.era == Era::Modern {
                    let asked = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
                    let asked = json!({"who": {"method": "elicitation/create", "params": asked}});
                    return Ok(json!({"resultType": "input_required", "inputRequests": asked}));
                }
                let message = request.params["arguments"]["message"].as_str().unwrap_or("Who?");
                let answer = channel.ask("elicitation/create", json!({"message": message, "requestedSchema": schema})).await?;
                Ok(text(&format!("User response: {answer}")))
            }
            "test_missing_capability" if request.from.capabilities.get("sampling").is_none() => {
                let data = Some(json!({"requiredCapabilities": {"sampling": {}}}));
                Err(RpcError { code: CODES.capability, message: "sampling is needed".to_owned(), data })
            }
            "test_trigger_tool_change" => {
                self.change(Change::Tools);
                Ok(text("changed"))
            }
            "test_trigger_prompt_change" => {
                self.change(Change::Prompts);
                Ok(text("changed"))
            }
            "wait" => {
                progress(0);
                self.see("waiting");
                request.cancel.cancelled().await;
                self.see("cancelled");
                // What is said now, nobody may hear.
                progress(1);
                Ok(text("too late"))
            }
            "pour" => {
                while !request.cancel.is_cancelled() {
                    channel.notify("notifications/progress", json!({"progressToken": 1, "progress": 0, "message": "x".repeat(100_000)}));
                    tokio::task::yield_now().await;
                }
                self.see("cancelled");
                Ok(text("poured"))
            }
            "late" => {
                let (cancel, channel, stage) = (request.cancel, channel.clone(), self.own.upgrade());
                tokio::spawn(async move {
                    cancel.cancelled().await;
                    channel.notify("notifications/progress", json!({"progressToken": 1, "progress": 1}));
                    stage.unwrap().see("over");
                });
                Ok(text("done"))
            }
            "between" => {
                self.speak_between(&request);
                Ok(text("done"))
            }
            "change_now" => {
                channel.notify("notifications/tools/list_changed", json!({}));
                Ok(text("changed"))
            }
            "ask_modern" => channel.ask("elicitation/create", json!({})).await,
            "burst" => {
                burst(&*channel);
                Ok(text("burst"))
            }
            "regional" => Ok(text("regional")),
            "list_data" => Ok(json!({"content": [], "structuredContent": [1, 2]})),
            "panic" => panic!("on purpose"),
            "no_object" => Ok(json!("text")),
            name => Err(RpcError { code: CODES.params, message: format!("Unknown tool: {name}"), data: None }),
        }
    }
}

impl Backend for Stage {
    fn about(&self) -> ServerInfo {
        ServerInfo { name: "stage".to_owned(), version: "1.2.3".to_owned(), instructions: Some("Play.".to_owned()) }
    }

    fn capabilities(&self, era: Era) -> Value {
        let mut capabilities = json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
        });
        if era == Era::Legacy {
            capabilities["logging"] = json!({});
        }
        capabilities
    }

    fn handle(&self, request: ClientRequest) -> BoxFuture<'_, Result<Value, RpcError>> {
        async move {
            match request.method.as_str() {
                "tools/list" => Ok(json!({"tools": tools()})),
                "tools/call" => self.call(request).await,
                "prompts/list" => Ok(json!({"prompts": []})),
                "resources/list" => Ok(json!({"resources": [{"uri": "test://a", "name": "a"}]})),
                "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
                "resources/read" => Ok(json!({"contents": [{"uri": request.params["uri"], "text": "a"}]})),
                "resources/subscribe" | "resources/unsubscribe" => {
                    let uri = request.params["uri"].as_str().unwrap_or_default();
                    self.see(format!("{} {uri}", request.method));
                    if uri == "test://refused" {
                        return Err(RpcError { code: CODES.params, message: "no such resource".to_owned(), data: None });
                    }
                    Ok(json!({}))
                }
                method => Err(RpcError { code: CODES.method, message: format!("no {method}"), data: None }),
            }
        }
        .boxed()
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn session_ended(&self, session: &str) {
        self.see(format!("ended {session}"));
    }
}

/// More at once than anybody reads.
fn burst(channel: &dyn BackChannel) {
    for number in 0..5_000 {
        channel.notify("notifications/progress", json!({"progressToken": "p", "progress": number, "message": "x".repeat(1_000)}));
    }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn tools() -> Vec<Value> {
    let names = [
        "test_simple_text",
        "test_error_handling",
        "test_tool_with_logging",
        "test_logging_tool",
        "test_tool_with_progress",
        "test_sampling",
        "test_elicitation",
        "test_streaming_elicitation",
        "test_missing_capability",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
    ];
    let plain = names.map(|name| json!({"name": name, "description": "for tests", "inputSchema": {"type": "object"}}));
    let region = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let odd = json!({"name": "list_data", "description": "gives a list", "inputSchema": {}, "outputSchema": {"type": "array"}});
    let regional = json!({"name": "regional", "description": "has a header", "inputSchema": region});
    plain.into_iter().chain([regional, odd]).collect()
}
