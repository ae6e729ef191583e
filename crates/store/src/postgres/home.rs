//! The thread on which connections live. Whoever uses the record may block or end the runtime that it uses it from; what was begun goes on,
//! and leases are kept.

use std::future::Future;
use std::thread;

use helve_core::StoreError;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread with a runtime of its own. It ends when this is dropped, and what is under way on it ends too.
pub(super) struct Home {
    handle: Handle,
    _stay: oneshot::Sender<()>,
}

impl Home {
    pub(super) fn start() -> Result<Self, StoreError> {
        let no_thread = |error: std::io::Error| StoreError::Unavailable(format!("no thread for the record: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let handle = runtime.handle().clone();
        let (stay, left) = oneshot::channel::<()>();
        let run = move || {
            let _ = runtime.block_on(left);
        };
        thread::Builder::new().name("helve-store".to_owned()).spawn(run).map_err(no_thread)?;
        Ok(Self { handle, _stay: stay })
    }

    /// Does something there. It is done even if nobody waits for it.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + 'static {
        let work = self.handle.spawn(work);
        async move { work.await.unwrap_or_else(|_| Err(StoreError::Unavailable("what was begun broke off".to_owned()))) }
    }
}
