//! Connects a [`Helve`](super::Helve) to the Model Context Protocol: as a client of the project's servers, and as a server of the
//! catalogue.

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
