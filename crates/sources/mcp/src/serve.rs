//! Helve as an MCP server: the protocol in both eras, over stdio and HTTP. What is served is a [`Backend`].

mod asks;
mod channel;
mod connections;
mod framing;
mod guard;
mod http;
mod hub;
mod ladder;
mod legacy;
mod level;
mod listen;
mod listener;
mod modern;
mod open;
mod options;
mod places;
mod present;
mod server;
mod session;
mod sessions;
mod socket;
mod standing;
mod stdio;
mod stream;

use futures_util::future::BoxFuture;
use helve_mcp_wire::{Era, RpcError};
use serde_json::Value;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::caller::Downstream;

pub use options::Options;
pub use server::Server;
pub use stream::ReplyBody;

/// The code of the error that says that there is too much to do.
const BUSY: i64 = -32000;

/// One request of a client that is not about the protocol itself.
#[derive(Debug)]
pub struct Incoming {
    /// What is wanted, such as `tools/call`.
    pub method: String,
    /// With what, as it came, with its `_meta`; an empty object where there was nothing.
    pub params: Value,
    /// Who asks.
    pub from: Downstream,
    /// Fires when nobody waits for the answer any more.
    pub cancel: CancellationToken,
}

/// Something that clients may want to know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The list of tools is another.
    Tools,
    /// The list of prompts is another.
    Prompts,
    /// The list of resources is another.
    Resources,
    /// One resource, by its address, is another.
    Resource(String),
}

/// What a server says about itself.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Its name, for programs.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What models should know of it.
    pub instructions: Option<String>,
}

/// What is served.
pub trait Backend: Send + Sync + 'static {
    /// What the server says about itself.
    fn about(&self) -> About;

    /// What it can do, as the object `capabilities` of an era.
    fn capabilities(&self, era: Era) -> Value;

    /// Answers one request: `tools/list`, `tools/call`, and whatever else it knows.
    ///
    /// The result is an object. What every result of an era has besides (`resultType`, `ttlMs`, `cacheScope`, `_meta` of the server) is
    /// added by the protocol where it is missing, and left out where the era does not know it. A result with `resultType` `input_required`
    /// goes out as it is. A method that it does not know is an error with the code for that.
    ///
    /// The protocol answers by itself: `initialize`, `ping`, `server/discover`, `subscriptions/listen`. It keeps levels of logs and
    /// subscriptions, and passes them on for a backend that wants to know: `logging/setLevel` in the older era; `resources/subscribe` and
    /// `resources/unsubscribe` in both, in the newer one for each resource that somebody begins or ceases to listen for. There an error
    /// means that this resource cannot be listened for, unless it is that there is no such method.
    fn handle(&self, request: Incoming) -> BoxFuture<'_, Result<Value, RpcError>>;

    /// What changes from now on.
    fn changes(&self) -> broadcast::Receiver<Change>;

    /// A session of the older era is over; what was kept for it can go.
    fn session_ended(&self, _session: &str) {}
}
