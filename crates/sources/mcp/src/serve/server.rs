//! The server as its owner sees it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::Backend;
use super::hub::Hub;
use super::options::Options;

/// Serves a [`Backend`] over MCP, in both eras. Cheap to clone; clones are the same server.
#[derive(Clone)]
pub struct Server {
    pub(super) hub: Arc<Hub>,
    /// The address that this one listens on.
    pub(super) bound: Option<IpAddr>,
}

impl Server {
    /// A server that nobody can reach yet.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, options: Options) -> Self {
        Self { hub: Arc::new(Hub::new(backend, options)), bound: None }
    }

    /// Ends the server, for all clones of it: streams end, requests have a moment to be answered, sessions are over. What comes later is
    /// refused.
    pub async fn stop(&self) {
        self.hub.stop().await;
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("options", &self.hub.options).field("bound", &self.bound).finish_non_exhaustive()
    }
}
