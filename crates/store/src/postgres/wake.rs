//! Wake-ups: a number that grows with every change, here at once, elsewhere by a notification.
//!
//! One connection of a process listens and speaks. It speaks outside the transactions, because a notification makes those that
//! carry one commit one after the other, and at most once in a few milliseconds, however much changed. What is lost on the way
//! costs time only: whoever waits also looks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use helve_core::HolderId;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio_postgres::AsyncMessage;

use super::address::Address;

/// Others are told at most this often.
const QUIET: Duration = Duration::from_millis(5);
/// Pauses between attempts to connect, the shortest and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Tells of changes, and hears of them. Its task ends when it is dropped.
pub(super) struct Wake {
    changes: watch::Sender<u64>,
    speak: Arc<Notify>,
    task: AbortHandle,
}

impl Wake {
    /// Begins to listen.
    pub(super) fn start(address: Address) -> Self {
        let (changes, speak) = (watch::Sender::new(0), Arc::new(Notify::new()));
        let task = tokio::spawn(stay(address, changes.clone(), speak.clone())).abort_handle();
        Self { changes, speak, task }
    }

    /// Something changed that only this process waits for.
    pub(super) fn here(&self) {
        self.changes.send_modify(|number| *number += 1);
    }

    /// Something changed.
    pub(super) fn everywhere(&self) {
        self.here();
        self.speak.notify_one();
    }

    /// The number.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Keeps a connection, and makes a new one when it breaks.
async fn stay(address: Address, changes: watch::Sender<u64>, speak: Arc<Notify>) {
    let [shortest, longest] = PAUSES;
    let mut pause = shortest;
    loop {
        let began = tokio::time::Instant::now();
        if let Err(error) = connected(&address, &changes, &speak).await {
            tracing::debug!(%error, "changes of other processes are not heard now");
        }
        // A connection that held for a while was a good one.
        pause = if began.elapsed() > longest { shortest } else { (pause * 2).min(longest) };
        tokio::time::sleep(pause).await;
    }
}

async fn connected(address: &Address, changes: &watch::Sender<u64>, speak: &Notify) -> Result<(), tokio_postgres::Error> {
    // Its own voice is not heard twice.
    let name = HolderId::mint().to_string();
    let (client, mut connection) = address.config.connect(address.tls.clone()).await?;
    let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
    let listen = async {
        while let Some(message) = messages.next().await {
            if let AsyncMessage::Notification(note) = message?
                && note.payload() != name
            {
                changes.send_modify(|number| *number += 1);
            }
        }
        Ok(())
    };
    let speak = async {
        client.batch_execute("LISTEN helve").await?;
        // Nobody knows what happened while nobody listened.
        changes.send_modify(|number| *number += 1);
        loop {
            speak.notified().await;
            client.batch_execute(&format!("NOTIFY helve, '{name}'")).await?;
            tokio::time::sleep(QUIET).await;
        }
    };
    tokio::select! {
        over = listen => over,
        over = speak => over,
    }
}
