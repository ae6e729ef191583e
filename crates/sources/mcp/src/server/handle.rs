//! The server as its owner sees it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::Backend;
use super::hub::Hub;
use super::options::ServerOptions;

/// Serves a [`Backend`] over MCP, in both eras. Cheap to clone; clones are the same server.
#[derive(Clone)]
pub struct Server {
    pub(super) hub: Arc<Hub>,
    /// The address that it listens on.
    pub(super) bound: Option<IpAddr>,
}

impl Server {
    /// Creates a server. Nothing can reach it yet.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, options: ServerOptions) -> Self {
        Self { hub: Arc::new(Hub::new(backend, options)), bound: None }
    }

    /// Stops the server and all clones of it: streams end, open requests get a grace period, sessions end. Later requests are refused.
    pub async fn stop(&self) {
        self.hub.stop().await;
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("options", &self.hub.options).field("bound", &self.bound).finish_non_exhaustive()
    }
}
