//! What clients read of tools and outcomes.

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::{Digest, EventData, Observer, Outcome, Output, Status, ToolError};
use helve_mcp::{BackChannel, Downstream, content};
use helve_mcp_wire::{CODES, META, RpcError};
use helve_tools::Entry;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// A sign of life is so much progress: clients expect that it grows.
const ALIVE: f64 = 1e-6;
/// Names that MCP clients take.
const MAX_NAME: usize = 128;

/// Progress of a call, told by the name that the client gave it. It never goes back.
pub(super) struct Told {
    token: Value,
    channel: Arc<dyn BackChannel>,
    so_far: Mutex<f64>,
}

impl Told {
    /// Nothing where the client does not want to know.
    pub(super) fn of(from: &Downstream) -> Option<Arc<Self>> {
        let token = from.progress_token.clone()?;
        Some(Arc::new(Self { token, channel: from.channel.clone(), so_far: Mutex::new(0.0) }))
    }

    /// Says how far the call is; where nobody knows, that it goes on.
    pub(super) fn say(&self, fraction: Option<f64>, message: &str) {
        let mut so_far = self.so_far.lock();
        *so_far = fraction.unwrap_or(0.0).max(*so_far + ALIVE);
        let mut params = Map::new();
        params.insert(META.progress.to_owned(), self.token.clone());
        params.insert("progress".to_owned(), json!(*so_far));
        if fraction.is_some() {
            params.insert("total".to_owned(), json!(1.0));
        }
        if !message.is_empty() {
            params.insert("message".to_owned(), message.into());
        }
        self.channel.notify("notifications/progress", Value::Object(params));
    }
}

impl Observer for Told {
    fn observe(&self, event: EventData) {
        if let EventData::ToolProgress { fraction, message, .. } = event {
            self.say(fraction, &message);
        }
    }
}

/// The name by which clients call a tool: the catalogue's, where all clients take it.
pub(super) fn served_name(entry: &Entry) -> &Arc<str> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    let name = entry.name();
    if name.len() <= MAX_NAME && name.chars().all(fits) { name } else { entry.model_name() }
}

/// What clients are told about a tool. What a server that is trusted says besides goes along.
pub(super) fn describe(entry: &Arc<Entry>, said: &HashMap<Digest, Map<String, Value>>) -> Value {
    let spec = entry.spec();
    let description = if spec.description().trim().is_empty() { spec.title().unwrap_or(spec.name()) } else { spec.description() };
    let mut tool = json!({"name": served_name(entry), "description": description, "inputSchema": spec.input().value()});
    if let Some(title) = spec.title() {
        tool["title"] = json!(title);
    }
    if let Some(output) = spec.output() {
        tool["outputSchema"] = output.value().clone();
    }
    if let Some(said) = spec.implementation().and_then(|behind| said.get(&behind)) {
        for (field, value) in said {
            tool[field] = value.clone();
        }
    } else if spec.rules().idempotent {
        tool["annotations"] = json!({"idempotentHint": true});
    }
    tool
}

/// What a client reads of an outcome.
pub(super) fn present(outcome: Outcome) -> Result<Value, RpcError> {
    let result: Result<Output, ToolError> = match outcome.status {
        Status::Done(result) => result,
        Status::Accepted | Status::Waiting(_) => Ok(Output::text(outcome.text())),
    };
    if let Err(error) = &result
        && let Some(protocol) = error.details().get("mcp")
    {
        // What a server said in the words of the protocol goes on in the same words.
        if let Some(said) = protocol.get("error").and_then(|error| serde_json::from_value::<RpcError>(error.clone()).ok()) {
            return Err(said);
        }
        if let Some(said) = protocol.get("result") {
            return Ok(said.clone());
        }
    }
    Ok(content::write(&result))
}

pub(super) fn refusal(code: i64, message: String) -> RpcError {
    RpcError { code, message, data: None }
}

pub(super) fn internal(error: impl std::fmt::Display) -> RpcError {
    refusal(CODES.internal, error.to_string())
}
