//! Batches changes of one kind: changes that arrive while a batch is being committed share the next transaction. Each caller gets its
//! result after the commit.

use std::future::Future;
use std::sync::Arc;

use helve_core::StoreError;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::row::Result;

/// Maximum number of changes in one transaction.
const MAX_BATCH: usize = 256;

/// Maximum number of concurrent transactions of one kind: while one waits for the disk, the next one can run.
const MAX_CONCURRENT: usize = 2;

type Pending<I, O> = (I, oneshot::Sender<Result<O>>);

/// A queue that collects changes of one kind into batches. Its background task ends after the batcher is dropped and all pending changes
/// are done.
pub(super) struct Batcher<I, O>(mpsc::UnboundedSender<Pending<I, O>>);

impl<I: Send + 'static, O: Send + 'static> Batcher<I, O> {
    /// Starts a batcher. `work` applies a batch of changes, and returns one result for each.
    pub(super) fn start<F>(work: impl Fn(Vec<I>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Vec<Result<O>>> + Send + 'static,
    {
        let (sender, mut pending) = mpsc::unbounded_channel::<Pending<I, O>>();
        let work = Arc::new(work);
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT));
        tokio::spawn(async move {
            while let Ok(permit) = permits.clone().acquire_owned().await {
                let mut batch = Vec::new();
                if pending.recv_many(&mut batch, MAX_BATCH).await == 0 {
                    return;
                }
                gather(&mut pending, &mut batch).await;
                let work = work.clone();
                tokio::spawn(async move {
                    let (changes, callers): (Vec<I>, Vec<_>) = batch.into_iter().unzip();
                    // Spawn a task, so that the callers get a result even if `work` panics.
                    let results = tokio::spawn(work(changes)).await.unwrap_or_default();
                    let results = results.into_iter().chain(std::iter::repeat_with(|| Err(closed())));
                    for (caller, result) in callers.into_iter().zip(results) {
                        // Ignore an error: the caller may have stopped waiting, but the transaction is committed.
                        let _ = caller.send(result);
                    }
                    drop(permit);
                });
            }
        });
        Self(sender)
    }

    /// Adds a change to the next batch. The change is applied even if the returned future is dropped.
    pub(super) fn send(&self, change: I) -> impl Future<Output = Result<O>> + Send + 'static {
        let (caller, result) = oneshot::channel();
        let sent = self.0.send((change, caller));
        async move {
            sent.map_err(|_| closed())?;
            result.await.unwrap_or_else(|_| Err(closed()))
        }
    }
}

/// Adds changes that arrive shortly after: callers whose changes were committed together tend to send the next ones together. Returns
/// at once if none arrive.
async fn gather<T>(pending: &mut mpsc::UnboundedReceiver<T>, batch: &mut Vec<T>) {
    let mut quiet = 0;
    while quiet < 3 && batch.len() < MAX_BATCH {
        tokio::task::yield_now().await;
        quiet += 1;
        while batch.len() < MAX_BATCH
            && let Ok(more) = pending.try_recv()
        {
            batch.push(more);
            quiet = 0;
        }
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}
