//! The thread on which connections live. The caller may block or stop its own runtime; transactions in progress continue here, and
//! leases are renewed.

use std::future::Future;
use std::thread;

use helve_core::StoreError;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::row::Result;

/// A thread with its own tokio runtime. Dropping it ends the thread and all work on it.
pub(super) struct RuntimeThread {
    handle: Handle,
    _running: oneshot::Sender<()>,
}

impl RuntimeThread {
    pub(super) fn start() -> Result<Self> {
        let no_thread = |error: std::io::Error| StoreError::Unavailable(format!("cannot start a thread: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let handle = runtime.handle().clone();
        let (running, dropped) = oneshot::channel::<()>();
        let run = move || {
            let _ = runtime.block_on(dropped);
        };
        thread::Builder::new().name("helve-store".to_owned()).spawn(run).map_err(no_thread)?;
        Ok(Self { handle, _running: running })
    }

    /// Runs work on the thread. It completes even if the returned future is dropped.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send + 'static {
        let work = self.handle.spawn(work);
        async move { work.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the operation was aborted".to_owned()))) }
    }
}
