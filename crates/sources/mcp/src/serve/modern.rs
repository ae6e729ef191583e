//! Requests of the newer era: each says all that is needed to answer it.

use std::sync::Arc;

use helve_mcp_wire::{Era, RpcError};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::channel::{Channel, Voice};
use super::hub::Hub;
use super::ladder::{self, Caller};
use super::stream::Out;
use super::{Incoming, present};
use crate::caller::Downstream;

/// A request as the backend gets it. Without a way out, nothing is told to the client before the answer.
pub(super) fn incoming(
    method: &str,
    params: Option<Value>,
    caller: &Caller,
    out: Option<mpsc::Sender<Out>>,
    cancel: &CancellationToken,
) -> Incoming {
    let progress = caller.progress.is_some();
    let channel = Channel { out, voice: Voice::Modern(caller.level), progress, over: cancel.clone() };
    let from = Downstream {
        era: Era::Modern,
        session: None,
        capabilities: caller.capabilities.clone(),
        client: caller.client.clone(),
        log_level: caller.level.map(|level| level.name().into()),
        progress_token: caller.progress.clone(),
        channel: Arc::new(channel),
        between: None,
    };
    Incoming { method: method.to_owned(), params: params.unwrap_or_else(|| json!({})), from, cancel: cancel.clone() }
}

/// Answers a request that may be answered.
pub(super) async fn answer(hub: Arc<Hub>, request: Incoming) -> Result<Value, RpcError> {
    let method = request.method.clone();
    let result = match method.as_str() {
        "server/discover" => discover(&hub),
        _ => hub.backend.handle(request).await?,
    };
    if method == "tools/list" {
        hub.mirrored.learn(&result);
    }
    present::modern(&method, result, &hub.backend.about())
}

fn discover(hub: &Hub) -> Value {
    let mut result = json!({
        "supportedVersions": ladder::versions(),
        "capabilities": hub.backend.capabilities(Era::Modern),
    });
    if let Some(instructions) = hub.backend.about().instructions {
        result["instructions"] = instructions.into();
    }
    result
}
