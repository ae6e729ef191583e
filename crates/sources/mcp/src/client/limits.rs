//! Limits on what a server may send.

use std::time::Duration;

/// The largest message.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;
/// Timeout for the first response of a program that may not know the request.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for requests that run no tool: handshakes and lists.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest instructions of a server.
pub(crate) const MAX_INSTRUCTIONS: usize = 64 << 10;
