//! Clients of Helve's MCP server, and the channels back to a client.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_mcp_wire::{Era, InputRequired, InputResponses, Meta, RpcError};
use parking_lot::Mutex;
use serde_json::Value;

/// The channel back to a client.
pub trait BackChannel: Send + Sync {
    /// Sends a notification, such as progress, without blocking. Drops a notification that cannot be delivered.
    fn notify(&self, method: &str, params: Value);

    /// Sends a request to the client, and waits for the response.
    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>>;
}

/// A client of Helve's MCP server, as described by one of its requests.
#[derive(Clone)]
pub struct Downstream {
    /// The era of the client.
    pub era: Era,
    /// The id of the session of a legacy client; `None` in the modern era.
    pub session: Option<Arc<str>>,
    /// The client's capabilities: the value of `clientCapabilities`.
    pub capabilities: Arc<Value>,
    /// The client's name and version: the value of `clientInfo`.
    pub client: Option<Arc<Value>>,
    /// The lowest level of log messages that the client wants; `None` if the client wants no log messages.
    pub log_level: Option<Arc<str>>,
    /// The client's token for progress notifications; `None` if the client wants no progress notifications.
    pub progress_token: Option<Value>,
    /// The channel back to the client while this request is open.
    pub channel: Arc<dyn BackChannel>,
    /// The channel to the client between its requests, until its session ends; `None` in the modern era.
    pub between: Option<Arc<dyn BackChannel>>,
}

impl fmt::Debug for Downstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downstream").field("era", &self.era).field("session", &self.session).finish_non_exhaustive()
    }
}

/// The context of a call that a client made over MCP, for the tools of upstream servers. Returns a server's input requests to the client.
#[derive(Debug, Clone)]
pub struct Passage {
    /// The client that made the call.
    pub from: Downstream,
    /// The client's responses to earlier input requests.
    pub input: InputResponses,
    /// The `_meta` of the client's request.
    pub meta: Option<Value>,
    required: Arc<Mutex<Option<InputRequired>>>,
}

impl Passage {
    /// Creates the context of a request with these parameters and these responses to earlier input requests.
    #[must_use]
    pub fn new(from: Downstream, params: &Value, input: InputResponses) -> Self {
        Self { from, input, meta: Meta::raw(params), required: Arc::default() }
    }

    /// Sets the server's input requests for the client. The call then ends with an error, because it has no result yet.
    pub(crate) fn require(&self, input: InputRequired) {
        *self.required.lock() = Some(input);
    }

    /// Removes and returns the server's input requests.
    #[must_use]
    pub fn take_input_required(&self) -> Option<InputRequired> {
        self.required.lock().take()
    }
}
