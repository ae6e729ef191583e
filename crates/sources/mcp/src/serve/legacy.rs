//! Requests of the older era: what a session is begun with, and what is answered in it.

use std::sync::Arc;

use helve_mcp_wire::{CODES, Era, RpcError};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::channel::{Between, Channel, Voice};
use super::hub::{Hub, error};
use super::ladder::progress;
use super::level::Level;
use super::session::Session;
use super::stream::Out;
use super::{Incoming, present};
use crate::caller::Downstream;

/// Begins a session: the session, and what the client is told. Whoever is at the end of a pipe is told everything over it.
pub(super) fn initialize(hub: &Hub, params: Option<Value>, pipe: Option<&mpsc::Sender<Out>>) -> Result<(Session, Value), RpcError> {
    let mut params = params.unwrap_or_default();
    let Some(asked) = params.get("protocolVersion").and_then(Value::as_str) else {
        return Err(error(CODES.params, "`protocolVersion` is missing"));
    };
    let version = if Era::of(asked) == Some(Era::Legacy) { asked.to_owned() } else { Era::Legacy.newest().to_owned() };
    let capabilities = params.get_mut("capabilities").map(Value::take).filter(Value::is_object).unwrap_or_else(|| json!({}));
    let client = params.get_mut("clientInfo").map(Value::take).filter(Value::is_object);
    let session = Session::new(capabilities, client, hub.abort.child_token(), pipe)?;
    let about = hub.backend.about();
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": hub.backend.capabilities(Era::Legacy),
        "serverInfo": present::server_info(&about),
    });
    if let Some(instructions) = about.instructions {
        result["instructions"] = instructions.into();
    }
    Ok((session, result))
}

/// A request as the backend gets it. Without a way out, nothing is told to the client before the answer.
pub(super) fn incoming(
    session: &Arc<Session>,
    method: &str,
    params: Option<Value>,
    out: Option<mpsc::Sender<Out>>,
    cancel: &CancellationToken,
) -> Incoming {
    let token = progress(params.as_ref());
    let channel = Channel { out, voice: Voice::Legacy(session.clone()), progress: token.is_some(), over: cancel.clone() };
    let from = Downstream {
        era: Era::Legacy,
        session: Some(session.id.clone()),
        capabilities: session.capabilities.clone(),
        client: session.client.clone(),
        log_level: session.level().map(|level| level.name().into()),
        progress_token: token,
        channel: Arc::new(channel),
        between: Some(Arc::new(Between(session.clone()))),
    };
    Incoming { method: method.to_owned(), params: params.unwrap_or_else(|| json!({})), from, cancel: cancel.clone() }
}

/// Answers a request within a session.
pub(super) async fn answer(hub: Arc<Hub>, session: Arc<Session>, request: Incoming) -> Result<Value, RpcError> {
    if !request.params.is_object() {
        return Err(error(CODES.params, "The parameters are no object"));
    }
    let method = request.method.clone();
    let backend = &hub.backend;
    match method.as_str() {
        "ping" => Ok(json!({})),
        "initialize" | "server/discover" | "subscriptions/listen" => {
            Err(error(CODES.method, format!("There is no method `{method}` in this version")))
        }
        "logging/setLevel" => {
            let level = request.params.get("level").and_then(Value::as_str).and_then(Level::read);
            let level = level.ok_or_else(|| error(CODES.params, "There is no such level of logs"))?;
            // Levels are kept here; a backend may want to pass them on, and need not.
            match backend.handle(request).await {
                Err(error) if error.code != CODES.method => return Err(error),
                Ok(_) | Err(_) => session.set_level(level),
            }
            Ok(json!({}))
        }
        "resources/subscribe" | "resources/unsubscribe" => {
            let uri = request.params.get("uri").and_then(Value::as_str).ok_or_else(|| error(CODES.params, "`uri` is missing"))?.to_owned();
            let more = method == "resources/subscribe";
            if more {
                session.may_watch(&uri)?;
            }
            let result = backend.handle(request).await?;
            if more {
                session.watch(&uri);
            } else {
                session.unwatch(&uri);
            }
            present::legacy(&method, result)
        }
        _ => present::legacy(&method, backend.handle(request).await?),
    }
}
