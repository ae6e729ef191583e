//! The channels back to a client: while a request is open, and between requests.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use helve_mcp_wire::{CODES, RpcError};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::log_level::LogLevel;
use super::response::OutgoingMessage;
use super::session::Session;
use crate::downstream::BackChannel;

/// The channel back to a client while its request is open.
pub(super) struct RequestChannel {
    /// The queue of messages to the client; `None` for a client that accepts only JSON.
    pub out: Option<mpsc::Sender<OutgoingMessage>>,
    pub era: EraChannel,
    /// Whether the client wants progress notifications.
    pub progress: bool,
    /// The token that is cancelled when the response is sent, or the client no longer waits.
    pub over: CancellationToken,
}

/// What the server may send to a client of each era.
pub(super) enum EraChannel {
    /// Log messages at or above this level, and no requests.
    Modern(Option<LogLevel>),
    /// Log messages and requests, as far as the session allows them.
    Legacy(Arc<Session>),
}

impl RequestChannel {
    fn wants(&self, method: &str, params: &Value) -> bool {
        match (method, &self.era) {
            ("notifications/message", EraChannel::Modern(level)) => is_logged(*level, params),
            ("notifications/message", EraChannel::Legacy(session)) => is_logged(session.level(), params),
            ("notifications/progress", _) => self.progress,
            // In the modern era, only subscriptions send changes.
            (_, EraChannel::Modern(_)) => !method.ends_with("/list_changed") && method != "notifications/resources/updated",
            (_, EraChannel::Legacy(_)) => true,
        }
    }
}

/// Returns whether the log message in `params` is at or above the requested level.
fn is_logged(wanted: Option<LogLevel>, params: &Value) -> bool {
    let level = params.get("level").and_then(Value::as_str).and_then(LogLevel::read);
    wanted.is_some_and(|wanted| level.is_some_and(|level| level >= wanted))
}

impl BackChannel for RequestChannel {
    fn notify(&self, method: &str, params: Value) {
        if self.over.is_cancelled() || !self.wants(method, &params) {
            return;
        }
        if let Some(out) = &self.out {
            // A client that reads slowly loses notifications, but not its response.
            let _ = out.try_send(OutgoingMessage::notification(method, params));
        }
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        let EraChannel::Legacy(session) = &self.era else {
            return refuse(CODES.request, "Clients of this version accept no requests; return an `input_required` result instead");
        };
        let Some(out) = self.out.clone() else {
            return refuse(CODES.request, "The client does not accept `text/event-stream`, so it cannot receive requests");
        };
        ask(session.clone(), out, method, params, self.over.clone())
    }
}

/// The channel to a legacy client between its requests.
pub(super) struct SessionChannel(pub Arc<Session>);

impl BackChannel for SessionChannel {
    fn notify(&self, method: &str, params: Value) {
        let wanted = match method {
            "notifications/message" => is_logged(self.0.level(), &params),
            "notifications/progress" => false,
            _ => true,
        };
        if let Some(out) = self.0.between().filter(|_| wanted) {
            // Drops the message if the queue of a slow client is full.
            let _ = out.try_send(OutgoingMessage::notification(method, params));
        }
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        let Some(out) = self.0.between() else {
            return refuse(CODES.request, "The client does not listen, so it cannot receive requests");
        };
        ask(self.0.clone(), out, method, params, self.0.end.clone())
    }
}

/// Sends a request to the client, and waits for the response. Fails if the client does not declare the capability for the method.
fn ask(
    session: Arc<Session>,
    out: mpsc::Sender<OutgoingMessage>,
    method: &str,
    params: Value,
    over: CancellationToken,
) -> BoxFuture<'static, Result<Value, RpcError>> {
    let capability = match method {
        "sampling/createMessage" => "sampling",
        "elicitation/create" => "elicitation",
        "roots/list" => "roots",
        _ => "",
    };
    if !capability.is_empty() && !session.can(capability) {
        return refuse(CODES.method, &format!("The client does not have the capability `{capability}`"));
    }
    let method = method.to_owned();
    async move { session.client_requests.send(&out, &method, params, &over).await }.boxed()
}

fn refuse(code: i64, message: &str) -> BoxFuture<'static, Result<Value, RpcError>> {
    ready(Err(RpcError::new(code, message))).boxed()
}
