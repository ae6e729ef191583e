//! Limits on the messages and the response times of a server.

use std::time::Duration;

/// Maximum size of a message in bytes.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;
/// Timeout of the first request to a program, which may not know the method and never respond.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of requests that run no tool, such as handshakes and lists.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of a server's instructions in bytes.
pub(crate) const MAX_INSTRUCTIONS: usize = 64 << 10;
