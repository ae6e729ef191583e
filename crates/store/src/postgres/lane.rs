//! A lane for changes of one kind: those that come while one is being committed share the next transaction. Each is answered
//! when that is committed.

use std::future::Future;
use std::sync::Arc;

use helve_core::StoreError;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// So many changes share one transaction at most.
const GROUP: usize = 256;

/// So many transactions of a lane are under way at most: while one waits for the disk, the next is worked on.
const ABREAST: usize = 2;

type Waiting<I, O> = (I, oneshot::Sender<Result<O, StoreError>>);

/// Gathers changes of one kind. Its task ends when the lane is dropped and all that waits is done.
pub(super) struct Lane<I, O>(mpsc::UnboundedSender<Waiting<I, O>>);

impl<I: Send + 'static, O: Send + 'static> Lane<I, O> {
    /// A lane whose changes are made by a function, which gives one result for each.
    pub(super) fn start<F>(work: impl Fn(Vec<I>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Vec<Result<O, StoreError>>> + Send + 'static,
    {
        let (sender, mut waiting) = mpsc::unbounded_channel::<Waiting<I, O>>();
        let work = Arc::new(work);
        let places = Arc::new(Semaphore::new(ABREAST));
        tokio::spawn(async move {
            while let Ok(place) = places.clone().acquire_owned().await {
                let mut group = Vec::new();
                if waiting.recv_many(&mut group, GROUP).await == 0 {
                    return;
                }
                gather(&mut waiting, &mut group).await;
                let work = work.clone();
                tokio::spawn(async move {
                    let (changes, answers): (Vec<I>, Vec<_>) = group.into_iter().unzip();
                    // In a task of its own, so that whoever waits is answered also after a panic.
                    let results = tokio::spawn(work(changes)).await.unwrap_or_default();
                    let results = results.into_iter().chain(std::iter::repeat_with(|| Err(gone())));
                    for (answer, result) in answers.into_iter().zip(results) {
                        // Whoever asked may have given up; the record is as it is.
                        let _ = answer.send(result);
                    }
                    drop(place);
                });
            }
        });
        Self(sender)
    }

    /// Gives the lane a change. It is made even if nobody waits for its answer.
    pub(super) fn send(&self, change: I) -> impl Future<Output = Result<O, StoreError>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        let sent = self.0.send((change, answer));
        async move {
            sent.map_err(|_| gone())?;
            answered.await.unwrap_or_else(|_| Err(gone()))
        }
    }
}

/// Takes what comes a moment later: those who were answered together come back together. Where nobody comes, nobody waits.
async fn gather<T>(waiting: &mut mpsc::UnboundedReceiver<T>, group: &mut Vec<T>) {
    let mut quiet = 0;
    while quiet < 3 && group.len() < GROUP {
        tokio::task::yield_now().await;
        quiet += 1;
        while group.len() < GROUP
            && let Ok(more) = waiting.try_recv()
        {
            group.push(more);
            quiet = 0;
        }
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable("the record was closed".to_owned())
}
