//! An MCP server for both eras, over stdio and HTTP. A [`Backend`] handles the requests.

mod channel;
mod client_requests;
mod connections;
mod framing;
mod guard;
mod handle;
mod http;
mod hub;
mod legacy;
mod log_level;
mod modern;
mod modern_checks;
mod open_requests;
mod options;
mod present;
mod response;
mod session;
mod session_stream;
mod session_table;
mod slots;
mod socket;
mod stdio;
mod subscriptions;
mod tcp;

use futures_util::future::BoxFuture;
use helve_mcp_wire::{Change, Era, RpcError};
use serde_json::Value;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::downstream::Downstream;

pub use handle::Server;
pub use options::ServerOptions;
pub use response::ResponseBody;

/// The JSON-RPC error code of a server that is overloaded or stopping.
const BUSY: i64 = -32000;

/// A client's request that the backend handles.
#[derive(Debug)]
pub struct ClientRequest {
    /// The method, such as `tools/call`.
    pub method: String,
    /// The parameters of the request, including `_meta`; an empty object if the request has none.
    pub params: Value,
    /// The client that sent the request.
    pub from: Downstream,
    /// The token that is cancelled when the client no longer waits for the response.
    pub cancel: CancellationToken,
}

/// The name, version and instructions that a server sends to its clients.
#[derive(Debug, Clone, Default)]
pub struct ServerInfo {
    /// The name of the server, for programs.
    pub name: String,
    /// The version of the server.
    pub version: String,
    /// The server's instructions for models.
    pub instructions: Option<String>,
}

/// Handles the requests of a server's clients.
pub trait Backend: Send + Sync + 'static {
    /// Returns the name, version and instructions of the server.
    fn about(&self) -> ServerInfo;

    /// Returns the server's capabilities in an era, in the form of the field `capabilities`.
    fn capabilities(&self, era: Era) -> Value;

    /// Handles one request: `tools/list`, `tools/call`, and every other method that the backend supports.
    ///
    /// The result must be an object. The server adds the fields that every result of the era must have (`resultType`, `ttlMs`,
    /// `cacheScope`, the server's `_meta`) if they are missing, and removes fields that the era does not have. The server sends a result of
    /// the type `input_required` unchanged. For an unknown method, return an error with the code [`CODES.method`](helve_mcp_wire::CODES).
    ///
    /// The server itself handles `initialize`, `ping`, `server/discover` and `subscriptions/listen`. The server stores log levels and
    /// subscriptions, and also forwards them to the backend: `logging/setLevel` in the legacy era; `resources/subscribe` and
    /// `resources/unsubscribe` in both eras. In the modern era, the server sends one such request for each resource that a client starts or
    /// stops watching. An error other than for an unknown method then means that the resource cannot be watched.
    fn handle(&self, request: ClientRequest) -> BoxFuture<'_, Result<Value, RpcError>>;

    /// Subscribes to the changes of which the server notifies its clients.
    fn changes(&self) -> broadcast::Receiver<Change>;

    /// Notifies the backend that a legacy session has ended.
    fn session_ended(&self, _session: &str) {}
}
