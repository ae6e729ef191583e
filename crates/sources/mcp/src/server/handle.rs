//! The handle of the server.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::Backend;
use super::hub::Hub;
use super::options::ServerOptions;

/// A handle of an MCP server, which serves a [`Backend`] in both eras. Cheap to clone; clones share the server.
#[derive(Clone)]
pub struct Server {
    pub(super) hub: Arc<Hub>,
    /// The IP address on which the server listens, if it is known.
    pub(super) bound: Option<IpAddr>,
}

impl Server {
    /// Creates a server. It does not accept clients before it is started with one of the other methods.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, options: ServerOptions) -> Self {
        Self { hub: Arc::new(Hub::new(backend, options)), bound: None }
    }

    /// Stops the server, for all clones of the handle: closes streams, waits for open requests during the grace period, and ends sessions.
    /// Rejects later requests.
    pub async fn stop(&self) {
        self.hub.stop().await;
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("options", &self.hub.options).field("bound", &self.bound).finish_non_exhaustive()
    }
}
