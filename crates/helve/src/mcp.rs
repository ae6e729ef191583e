//! The Model Context Protocol (MCP): use the tools of MCP servers, and serve your tools to MCP clients.
//!
//! [`Mcp`] describes a server: a program, or a URL. [`Mcp::connect`] returns a source for [`Helve::builder`](crate::Helve::builder).
//! [`McpServing`] serves the catalogue over stdio or HTTP, with the same permissions as every other call.
//!
//! ```no_run
//! use helve::mcp::{Mcp, McpServing};
//! use helve::prelude::*;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let time = Mcp::command("time", ["mcp-server-time"]).trusted().connect().await?;
//! let helve = Helve::builder().source(time).build().await?;
//! helve.serve_stdio(McpServing::new().named("clock", "1.0")).await?;
//! # Ok(()) }
//! ```

pub use crate::compose::mcp::*;
