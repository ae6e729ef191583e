//! The way back to a client while its request is worked on.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use helve_mcp_wire::{CODES, RpcError};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::hub::error;
use super::level::Level;
use super::session::Session;
use super::stream::Out;
use crate::caller::BackChannel;

/// The way back to a client while its request is worked on.
pub(super) struct Channel {
    /// Where messages go; nowhere for a client that can only read an answer.
    pub out: Option<mpsc::Sender<Out>>,
    pub voice: Voice,
    /// Whether the client wants to hear of progress.
    pub progress: bool,
    /// Fires when the answer is out, or nobody waits for it.
    pub over: CancellationToken,
}

/// What may be said, which depends on the era.
pub(super) enum Voice {
    /// Logs from a level on; no questions.
    Modern(Option<Level>),
    /// What the session says.
    Legacy(Arc<Session>),
}

impl Channel {
    fn wants(&self, method: &str, params: &Value) -> bool {
        match (method, &self.voice) {
            ("notifications/message", Voice::Modern(level)) => is_loud_enough(*level, params),
            ("notifications/message", Voice::Legacy(session)) => is_loud_enough(session.level(), params),
            ("notifications/progress", _) => self.progress,
            // In the newer era changes are told to those who listen, and nobody else.
            (_, Voice::Modern(_)) => !method.ends_with("/list_changed") && method != "notifications/resources/updated",
            (_, Voice::Legacy(_)) => true,
        }
    }
}

/// Whether somebody wants to know of a log.
fn is_loud_enough(wanted: Option<Level>, params: &Value) -> bool {
    let level = params.get("level").and_then(Value::as_str).and_then(Level::read);
    wanted.is_some_and(|wanted| level.is_some_and(|level| level >= wanted))
}

impl BackChannel for Channel {
    fn notify(&self, method: &str, params: Value) {
        if self.over.is_cancelled() || !self.wants(method, &params) {
            return;
        }
        if let Some(out) = &self.out {
            // A reader that is too slow for what it is told still gets its answer.
            let _ = out.try_send(Out::note(method, params));
        }
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        let Voice::Legacy(session) = &self.voice else {
            return refuse(CODES.request, "Clients of this version are not asked; the answer is to say what is wanted (`input_required`)");
        };
        let Some(out) = self.out.clone() else {
            return refuse(CODES.request, "The client does not accept `text/event-stream`, so it cannot be asked");
        };
        ask(session.clone(), out, method, params, self.over.clone())
    }
}

/// The way to a client of the older era between its requests.
pub(super) struct Between(pub Arc<Session>);

impl BackChannel for Between {
    fn notify(&self, method: &str, params: Value) {
        let wanted = match method {
            "notifications/message" => is_loud_enough(self.0.level(), &params),
            "notifications/progress" => false,
            _ => true,
        };
        if let Some(out) = self.0.between().filter(|_| wanted) {
            // What a reader is too slow for is not kept.
            let _ = out.try_send(Out::note(method, params));
        }
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        let Some(out) = self.0.between() else {
            return refuse(CODES.request, "The client does not listen, so it cannot be asked");
        };
        ask(self.0.clone(), out, method, params, self.0.end.clone())
    }
}

/// Asks a client of the older era something that it can answer.
fn ask(
    session: Arc<Session>,
    out: mpsc::Sender<Out>,
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
    async move { session.asks.ask(&out, &method, params, &over).await }.boxed()
}

fn refuse(code: i64, message: &str) -> BoxFuture<'static, Result<Value, RpcError>> {
    ready(Err(error(code, message))).boxed()
}
