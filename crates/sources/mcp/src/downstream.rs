//! Clients that call over MCP, and the channel back to them while their call runs.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_mcp_wire::{Era, InputRequired, InputResponses, Meta, RpcError};
use parking_lot::Mutex;
use serde_json::Value;

/// The channel back to the client that made a request, while the request is open.
pub trait BackChannel: Send + Sync {
    /// Sends a notification, such as progress, without waiting. One that cannot be delivered is dropped.
    fn notify(&self, method: &str, params: Value);

    /// Sends a request, and waits for the response.
    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>>;
}

/// A client of Helve's MCP server, as one of its requests describes it.
#[derive(Clone)]
pub struct Downstream {
    /// The era of the client.
    pub era: Era,
    /// The session of a client of the legacy era; `None` in the modern era.
    pub session: Option<Arc<str>>,
    /// The client's capabilities: the object `clientCapabilities`.
    pub capabilities: Arc<Value>,
    /// The client's name and version: the object `clientInfo`.
    pub client: Option<Arc<Value>>,
    /// The lowest level of log messages that the client wants; `None` if it wants none.
    pub log_level: Option<Arc<str>>,
    /// The client's token for progress notifications; `None` if it wants none.
    pub progress_token: Option<Value>,
    /// The channel back to the client while this request is open.
    pub channel: Arc<dyn BackChannel>,
    /// The channel to the client between its requests, as long as its session lasts; `None` in the modern era.
    pub between: Option<Arc<dyn BackChannel>>,
}

impl fmt::Debug for Downstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downstream").field("era", &self.era).field("session", &self.session).finish_non_exhaustive()
    }
}

/// The context of a call that came over MCP, for tools of MCP servers behind Helve. A server's request for input goes back through it.
#[derive(Debug, Clone)]
pub struct Passage {
    /// The client.
    pub from: Downstream,
    /// The client's responses to an earlier request for input.
    pub input: InputResponses,
    /// The `_meta` of the client's request.
    pub meta: Option<Value>,
    required: Arc<Mutex<Option<InputRequired>>>,
}

impl Passage {
    /// The context of a request with these parameters and responses.
    #[must_use]
    pub fn new(from: Downstream, params: &Value, input: InputResponses) -> Self {
        Self { from, input, meta: Meta::raw(params), required: Arc::default() }
    }

    /// Hands the server's request for input to the client. The call ends with an error, because it has no result yet.
    pub(crate) fn require(&self, input: InputRequired) {
        *self.required.lock() = Some(input);
    }

    /// Returns whether the server asked for input.
    #[must_use]
    pub fn is_input_required(&self) -> bool {
        self.required.lock().is_some()
    }

    /// Takes the server's request for input.
    #[must_use]
    pub fn take_input_required(&self) -> Option<InputRequired> {
        self.required.lock().take()
    }
}
