//! Stores the era of each server, so that Helve need not probe the server on every connection.

use helve_core::Digest;
use helve_mcp_wire::Era;

/// Remembers the eras of servers. A remembered era is only a hint: Helve corrects a wrong one on the next connection.
pub trait EraStore: Send + Sync + 'static {
    /// Returns the last known era of a server, or `None` if the era is unknown or was stored too long ago.
    fn era(&self, server: &Digest) -> Option<Era>;

    /// Stores the era of a server. If this fails, Helve probes the server again on the next connection.
    fn remember(&self, server: &Digest, era: Era);
}
