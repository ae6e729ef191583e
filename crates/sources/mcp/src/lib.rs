//! The Model Context Protocol (MCP) in both eras, with and without a handshake: Helve as a client of MCP servers, as an MCP server, and as
//! a gateway that forwards requests of its clients to other servers.

mod client;
pub mod content;
mod definition;
mod downstream;
mod gateway;
mod line_reader;
pub mod login;
mod pin;
mod random;
pub mod server;

pub use client::{ConnectError, EraStore, Mcp, McpOptions, McpSource, Offer, RequestError, ServerReport};
pub use definition::{ImportedServer, McpDefinition, NewServer, OAuthFields, ToolFields, import};
pub use downstream::{BackChannel, Downstream, Passage};
pub use gateway::Gateway;
pub use helve_fetch::Url;
pub use helve_mcp_wire::Change;
pub use pin::{Flag, PinStatus, PinStore, Pins, inspect};
pub use random::{random_id, random_number};
