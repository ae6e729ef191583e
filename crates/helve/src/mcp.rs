//! The Model Context Protocol: tools of servers, and your tools as a server.
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

pub use crate::compose::McpServing;
pub use helve_mcp::*;
