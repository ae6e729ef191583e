//! Which era a server spoke last time, so that it need not be found out again.

use helve_core::Digest;
use helve_mcp_wire::Era;

/// Where the eras of servers are remembered. It is only a hint: what turns out to be wrong is found out anew.
pub trait EraStore: Send + Sync + 'static {
    /// The era that a server spoke last, if that is known and not long ago.
    fn era(&self, server: &Digest) -> Option<Era>;

    /// Remembers the era of a server. What cannot be kept is found out again.
    fn remember(&self, server: &Digest, era: Era);
}
