//! Handles requests of the legacy era: the handshake, and requests within a session.

use std::sync::Arc;

use helve_mcp_wire::{CODES, Era, Meta, RpcError};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::channel::{EraChannel, RequestChannel, SessionChannel};
use super::hub::Hub;
use super::log_level::LogLevel;
use super::response::OutgoingMessage;
use super::session::Session;
use super::{ClientRequest, present};
use crate::downstream::Downstream;

/// Creates a session. Returns the session and the result of `initialize`. Over stdio, `pipe` is the queue of all messages to the client.
pub(super) fn initialize(
    hub: &Hub,
    params: Option<Value>,
    pipe: Option<&mpsc::Sender<OutgoingMessage>>,
) -> Result<(Session, Value), RpcError> {
    let mut params = params.unwrap_or_default();
    let Some(requested) = params.get("protocolVersion").and_then(Value::as_str) else {
        return Err(RpcError::new(CODES.params, "`protocolVersion` is missing"));
    };
    let version = if Era::of(requested) == Some(Era::Legacy) { requested.to_owned() } else { Era::Legacy.newest().to_owned() };
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

/// Creates the request for the backend. If `out` is `None`, the client receives nothing before the response.
pub(super) fn incoming(
    session: &Arc<Session>,
    method: &str,
    params: Option<Value>,
    out: Option<mpsc::Sender<OutgoingMessage>>,
    cancel: &CancellationToken,
) -> ClientRequest {
    let token = Meta::of(params.as_ref()).and_then(Meta::progress_token).cloned();
    let channel = RequestChannel { out, era: EraChannel::Legacy(session.clone()), progress: token.is_some(), over: cancel.clone() };
    let from = Downstream {
        era: Era::Legacy,
        session: Some(session.id.clone()),
        capabilities: session.capabilities.clone(),
        client: session.client.clone(),
        log_level: session.level().map(|level| level.name().into()),
        progress_token: token,
        channel: Arc::new(channel),
        between: Some(Arc::new(SessionChannel(session.clone()))),
    };
    ClientRequest { method: method.to_owned(), params: params.unwrap_or_else(|| json!({})), from, cancel: cancel.clone() }
}

/// Handles a request within a session.
pub(super) async fn respond(hub: Arc<Hub>, session: Arc<Session>, request: ClientRequest) -> Result<Value, RpcError> {
    if !request.params.is_object() {
        return Err(RpcError::new(CODES.params, "The parameters are not an object"));
    }
    let method = request.method.clone();
    let backend = &hub.backend;
    match method.as_str() {
        "ping" => Ok(json!({})),
        "initialize" | "server/discover" | "subscriptions/listen" => {
            Err(RpcError::new(CODES.method, format!("Method `{method}` does not exist in this version")))
        }
        "logging/setLevel" => {
            let level = request.params.get("level").and_then(Value::as_str).and_then(LogLevel::read);
            let level = level.ok_or_else(|| RpcError::new(CODES.params, "Unknown log level"))?;
            // The session stores the level; the backend may forward it.
            match backend.handle(request).await {
                Err(error) if error.code != CODES.method => return Err(error),
                Ok(_) | Err(_) => session.set_level(level),
            }
            Ok(json!({}))
        }
        "resources/subscribe" | "resources/unsubscribe" => {
            let uri = request
                .params
                .get("uri")
                .and_then(Value::as_str)
                .ok_or_else(|| RpcError::new(CODES.params, "`uri` is missing"))?
                .to_owned();
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
