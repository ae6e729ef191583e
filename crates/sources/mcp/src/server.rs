//! The server side: Helve as an MCP server in both eras, over stdio and HTTP. A [`Backend`] provides what is served.

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

/// The error code of a server that is at capacity.
const BUSY: i64 = -32000;

/// A client's request, except those about the protocol itself.
#[derive(Debug)]
pub struct ClientRequest {
    /// The method, such as `tools/call`.
    pub method: String,
    /// The parameters as they came, with their `_meta`; an empty object if there were none.
    pub params: Value,
    /// The client.
    pub from: Downstream,
    /// Cancelled when the client no longer waits for the response.
    pub cancel: CancellationToken,
}

/// What a server says about itself.
#[derive(Debug, Clone, Default)]
pub struct ServerInfo {
    /// Its name, for programs.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its instructions for models.
    pub instructions: Option<String>,
}

/// Provides what is served.
pub trait Backend: Send + Sync + 'static {
    /// What the server says about itself.
    fn about(&self) -> ServerInfo;

    /// The object `capabilities` for an era.
    fn capabilities(&self, era: Era) -> Value;

    /// Handles one request: `tools/list`, `tools/call`, and every other method it knows.
    ///
    /// The result is an object. The server adds the fields that every result of an era has (`resultType`, `ttlMs`, `cacheScope`, the server's
    /// `_meta`) if they are missing, and removes those that the era does not have. A result of the type `input_required` is sent unchanged. An
    /// unknown method is an error with the code for that.
    ///
    /// The server itself handles `initialize`, `ping`, `server/discover` and `subscriptions/listen`. It keeps log levels and subscriptions, and
    /// forwards them to the backend: `logging/setLevel` in the legacy era; `resources/subscribe` and `resources/unsubscribe` in both, in the
    /// modern one for each resource that a client starts or stops to watch. There, an error other than an unknown method means that the
    /// resource cannot be watched.
    fn handle(&self, request: ClientRequest) -> BoxFuture<'_, Result<Value, RpcError>>;

    /// Subscribes to changes.
    fn changes(&self) -> broadcast::Receiver<Change>;

    /// Called when a legacy session has ended.
    fn session_ended(&self, _session: &str) {}
}
