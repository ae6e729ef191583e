//! The Model Context Protocol in a [`Helve`](super::Helve): the servers of a project, and the catalogue as a server.

#[cfg(feature = "project")]
mod admin;
#[cfg(feature = "project")]
mod eras;
#[cfg(feature = "project")]
mod logins;
#[cfg(feature = "project")]
mod pins;
#[cfg(feature = "project")]
mod servers;
mod service;

pub use helve_mcp::*;
#[cfg(feature = "project")]
pub(super) use servers::Servers;
pub use service::McpServing;
