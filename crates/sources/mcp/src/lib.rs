//! The Model Context Protocol in both eras: Helve as a client of servers, as a server, and as a gateway between the two.

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
