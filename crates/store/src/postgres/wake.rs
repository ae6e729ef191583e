//! Wake-ups: a number that grows with every change, here at once, elsewhere by a notification.
//!
//! One connection of a process listens and speaks, on a channel that belongs to the schema: a database may hold several records. It speaks outside the transactions, because a notification makes those that
//! carry one commit one after the other, and at most once in a few milliseconds, however much changed. What is lost on the way
//! costs time only: whoever waits also looks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use helve_core::HolderId;
use tokio::sync::{Notify, oneshot, watch};
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
    /// Begins to listen. When this returns it does, or could not.
    pub(super) async fn start(address: Address) -> Self {
        let (changes, speak) = (watch::Sender::new(0), Arc::new(Notify::new()));
        let (tried, first) = oneshot::channel();
        let task = tokio::spawn(stay(address, changes.clone(), speak.clone(), tried)).abort_handle();
        let wake = Self { changes, speak, task };
        let _ = first.await;
        wake
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
async fn stay(address: Address, changes: watch::Sender<u64>, speak: Arc<Notify>, tried: oneshot::Sender<()>) {
    let mut tried = Some(tried);
    let [shortest, longest] = PAUSES;
    let mut pause = shortest;
    loop {
        let began = tokio::time::Instant::now();
        if let Err(error) = connected(&address, &changes, &speak, &mut tried).await {
            tried = None;
            tracing::debug!(%error, "changes of other processes are not heard now");
        }
        // A connection that held for a while was a good one.
        pause = if began.elapsed() > longest { shortest } else { (pause * 2).min(longest) };
        tokio::time::sleep(pause).await;
    }
}

async fn connected(
    address: &Address,
    changes: &watch::Sender<u64>,
    speak: &Notify,
    tried: &mut Option<oneshot::Sender<()>>,
) -> Result<(), tokio_postgres::Error> {
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
        let schema: Option<String> = client.query_one("SELECT current_schema()", &[]).await?.try_get(0)?;
        let channel = format!("\"helve {}\"", schema.unwrap_or_default().replace('"', "\"\""));
        client.batch_execute(&format!("LISTEN {channel}")).await?;
        // Nobody knows what happened while nobody listened.
        changes.send_modify(|number| *number += 1);
        *tried = None;
        loop {
            speak.notified().await;
            client.batch_execute(&format!("NOTIFY {channel}, '{name}'")).await?;
            tokio::time::sleep(QUIET).await;
        }
    };
    tokio::select! {
        over = listen => over,
        over = speak => over,
    }
}
