//! The era of each server, so that it need not be probed every time.

use helve_core::Digest;
use helve_mcp_wire::Era;

/// Remembers the eras of servers. It is only a hint: a wrong era is corrected on the next connection.
pub trait EraStore: Send + Sync + 'static {
    /// The last known era of a server, if it is recent.
    fn era(&self, server: &Digest) -> Option<Era>;

    /// Remembers the era of a server. A failure only costs another probe.
    fn remember(&self, server: &Digest, era: Era);
}
