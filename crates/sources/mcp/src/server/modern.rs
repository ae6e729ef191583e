//! Handles requests of the modern era, each of which contains everything that is needed to handle it.

use std::sync::Arc;

use helve_mcp_wire::{Era, RpcError};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::channel::{EraChannel, RequestChannel};
use super::hub::Hub;
use super::modern_checks::{self, ModernClient};
use super::response::OutgoingMessage;
use super::{ClientRequest, present};
use crate::downstream::Downstream;

/// Creates the request for the backend. If `out` is `None`, the client receives nothing before the response.
pub(super) fn incoming(
    method: &str,
    params: Option<Value>,
    caller: &ModernClient,
    out: Option<mpsc::Sender<OutgoingMessage>>,
    cancel: &CancellationToken,
) -> ClientRequest {
    let progress = caller.progress.is_some();
    let channel = RequestChannel { out, era: EraChannel::Modern(caller.level), progress, over: cancel.clone() };
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
    ClientRequest { method: method.to_owned(), params: params.unwrap_or_else(|| json!({})), from, cancel: cancel.clone() }
}

/// Handles a request that passed the checks.
pub(super) async fn respond(hub: Arc<Hub>, request: ClientRequest) -> Result<Value, RpcError> {
    let method = request.method.clone();
    let result = match method.as_str() {
        "server/discover" => discover(&hub),
        _ => hub.backend.handle(request).await?,
    };
    if method == "tools/list" {
        hub.header_params.learn(&result);
    }
    present::modern(&method, result, &hub.backend.about())
}

fn discover(hub: &Hub) -> Value {
    let mut result = json!({
        "supportedVersions": modern_checks::versions(),
        "capabilities": hub.backend.capabilities(Era::Modern),
    });
    if let Some(instructions) = hub.backend.about().instructions {
        result["instructions"] = instructions.into();
    }
    result
}
