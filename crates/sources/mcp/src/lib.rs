//! The Model Context Protocol: servers whose tools Helve uses, and Helve's tools as a server. Both eras of it, in both directions.

mod asking;
mod caller;
mod client;
pub mod content;
mod definition;
mod era_store;
mod gateway;
mod import;
mod inspect;
mod limits;
mod line;
mod listen;
mod new_server;
pub mod oauth;
mod offer;
mod parked;
mod pin;
pub mod serve;
mod source;
mod tool;
mod unguessable;
mod upstream;
mod watching;

pub use caller::{BackChannel, Downstream, Passage};
pub use client::Trouble;
pub use definition::{McpDefinition, OAuthFields, ToolFields};
pub use era_store::EraStore;
pub use gateway::Gateway;
pub use helve_fetch::Url;
pub use import::{Imported, import};
pub use inspect::{Flag, inspect};
pub use new_server::NewServer;
pub use offer::Offer;
pub use pin::{PinStore, Pinned, Pins};
pub use source::{McpOptions, McpSource, ServerReport};
pub use unguessable::{unguessable, unguessable_number};
