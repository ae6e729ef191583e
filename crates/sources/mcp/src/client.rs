//! The client side: servers as sources of tools, and connections to them in both eras.

mod builder;
mod connection;
mod elicitation;
mod era_store;
mod error;
mod handshake;
mod held_call;
mod http;
mod launch;
mod limits;
mod offer;
mod options;
mod peer;
mod source;
mod stdio;
mod subscription;
mod tool;
mod upstream;

pub use builder::{ConnectError, Mcp};
pub use era_store::EraStore;
pub use error::RequestError;
pub use offer::Offer;
pub use options::McpOptions;
pub use source::{McpSource, ServerReport};

pub(crate) use connection::{RequestOptions, ServerAddress};
pub(crate) use elicitation::{ASKS, MAX_REQUESTS};
pub(crate) use handshake::ClientIdentity;
pub(crate) use held_call::{CallProgress, HeldCall};
pub(crate) use http::Site;
pub(crate) use launch::{Launch, MARK};
pub(crate) use upstream::{INPUT_KEY, Upstream, request_digest};
