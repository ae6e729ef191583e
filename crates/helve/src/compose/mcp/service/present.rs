//! Converts tools, progress and outcomes to the form that MCP clients expect.

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::{Digest, EventData, Observer, Outcome, Output, Status, ToolError};
use helve_mcp::{BackChannel, Downstream, content};
use helve_mcp_wire::{CODES, META, RpcError};
use helve_tools::Entry;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The increase of the progress value with each keep-alive message: clients expect the value to grow.
const KEEP_ALIVE_STEP: f64 = 1e-6;
/// Maximum length of a tool name that MCP clients accept, in bytes.
const MAX_NAME: usize = 128;

/// Reports the progress of a call to the client. The reported value never decreases.
pub(super) struct ProgressReporter {
    token: Value,
    channel: Arc<dyn BackChannel>,
    last: Mutex<f64>,
}

impl ProgressReporter {
    /// Creates a reporter for a request. Returns `None` if the client did not ask for progress.
    pub(super) fn of(from: &Downstream) -> Option<Arc<Self>> {
        let token = from.progress_token.clone()?;
        Some(Arc::new(Self { token, channel: from.channel.clone(), last: Mutex::new(0.0) }))
    }

    /// Reports a fraction from 0 to 1, or, with `None`, that the call is still running.
    pub(super) fn report(&self, fraction: Option<f64>, message: &str) {
        let mut last = self.last.lock();
        *last = fraction.unwrap_or(0.0).max(*last + KEEP_ALIVE_STEP);
        let mut params = Map::new();
        params.insert(META.progress.to_owned(), self.token.clone());
        params.insert("progress".to_owned(), json!(*last));
        if fraction.is_some() {
            params.insert("total".to_owned(), json!(1.0));
        }
        if !message.is_empty() {
            params.insert("message".to_owned(), message.into());
        }
        self.channel.notify("notifications/progress", Value::Object(params));
    }
}

impl Observer for ProgressReporter {
    fn observe(&self, event: EventData) {
        if let EventData::ToolProgress { fraction, message, .. } = event {
            self.report(fraction, &message);
        }
    }
}

/// Returns the name of a tool for clients: the catalogue's name if all clients accept it, else the name for models.
pub(super) fn served_name(entry: &Entry) -> &Arc<str> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    let name = entry.name();
    if name.len() <= MAX_NAME && name.chars().all(fits) { name } else { entry.model_name() }
}

/// Returns the description of a tool for clients, with the extra fields of a trusted server.
pub(super) fn describe(entry: &Arc<Entry>, extra: &HashMap<Digest, Map<String, Value>>) -> Value {
    let spec = entry.spec();
    let description = if spec.description().trim().is_empty() { spec.title().unwrap_or(spec.name()) } else { spec.description() };
    let mut tool = json!({"name": served_name(entry), "description": description, "inputSchema": spec.input().value()});
    if let Some(title) = spec.title() {
        tool["title"] = json!(title);
    }
    if let Some(output) = spec.output() {
        tool["outputSchema"] = output.value().clone();
    }
    if let Some(extra) = spec.implementation().and_then(|digest| extra.get(&digest)) {
        for (field, value) in extra {
            tool[field] = value.clone();
        }
    } else if spec.rules().idempotent {
        tool["annotations"] = json!({"idempotentHint": true});
    }
    tool
}

/// Converts an outcome to a result. A JSON-RPC error of the server behind the tool is forwarded unchanged.
pub(super) fn present(outcome: Outcome) -> Result<Value, RpcError> {
    let result: Result<Output, ToolError> = match outcome.status {
        Status::Done(result) => result,
        Status::Accepted | Status::Waiting(_) => Ok(Output::text(outcome.text())),
    };
    let rpc = |error: &ToolError| RpcError::deserialize(error.details().get("mcp")?.get("error")?).ok();
    match result.as_ref().err().and_then(rpc) {
        Some(error) => Err(error),
        None => Ok(content::write(result)),
    }
}

pub(super) fn internal(error: impl std::fmt::Display) -> RpcError {
    RpcError::new(CODES.internal, error.to_string())
}
