//! A thread that runs all connections of a store. The caller may block or stop its own runtime: transactions still complete, and leases
//! are renewed.

use std::future::Future;
use std::thread;

use helve_core::StoreError;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::row::Result;

/// A thread with its own Tokio runtime. Dropping the value ends the thread and all work on it.
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

    /// Runs a future on the thread. The future completes even if the returned one is dropped.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send + 'static {
        let work = self.handle.spawn(work);
        async move { work.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the operation was aborted".to_owned()))) }
    }
}
