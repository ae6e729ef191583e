//! Who called over MCP, and the way back to them while their call runs.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_mcp_wire::{Era, RpcError};
use serde_json::{Map, Value};

/// The way back to whoever made a request, while it is open.
pub trait BackChannel: Send + Sync {
    /// Tells them something, such as progress. It does not wait; what cannot be delivered is dropped.
    fn notify(&self, method: &str, params: Value);

    /// Asks them something, and waits for their answer.
    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>>;
}

/// A client of Helve's MCP server, as one of its requests shows it. A call that comes from one carries this in its
/// context, so that a tool of an MCP server behind Helve can pass on what passes through.
#[derive(Clone)]
pub struct Downstream {
    /// How the client speaks.
    pub era: Era,
    /// Names the session of a client of the older era; one of the newer era has none.
    pub session: Option<Arc<str>>,
    /// What the client can do: the object `clientCapabilities`.
    pub capabilities: Arc<Value>,
    /// Who the client says it is.
    pub client: Option<Arc<Value>>,
    /// From which level on it wants logs; nothing where it wants none.
    pub log_level: Option<Arc<str>>,
    /// How it names the progress of this request; nothing where it wants none.
    pub progress_token: Option<Value>,
    /// The way back.
    pub channel: Arc<dyn BackChannel>,
    /// The way to it between its requests, as long as its session lasts; nothing in the newer era.
    pub between: Option<Arc<dyn BackChannel>>,
}

impl fmt::Debug for Downstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downstream").field("era", &self.era).field("session", &self.session).finish_non_exhaustive()
    }
}

/// What a call that came over MCP brings along, for tools of MCP servers behind Helve.
#[derive(Debug, Clone)]
pub struct Passage {
    /// Who called.
    pub from: Downstream,
    /// What the request said besides the tool and its arguments: answers to an earlier question, and `_meta`.
    pub extra: Map<String, Value>,
}
