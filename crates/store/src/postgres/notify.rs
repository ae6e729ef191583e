//! Change notifications: a counter that increases with every change, at once in this process and by `NOTIFY` in others.
//!
//! Each process has one connection that listens and notifies, on a channel for the schema, because a database may contain several
//! stores. `NOTIFY` runs outside the transactions, because PostgreSQL serialises commits that contain a `NOTIFY`, and at most once every
//! few milliseconds. A lost notification only causes a delay, because waiting processes also poll.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use helve_core::{Backoff, HolderId};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::AbortHandle;
use tokio_postgres::AsyncMessage;

use super::address::Address;

/// Minimum interval between two notifications.
const INTERVAL: Duration = Duration::from_millis(5);
/// The first and the maximum delay between attempts to connect.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// A sender and receiver of change notifications, with a background task. Dropping the notifier ends the task.
pub(super) struct Notifier {
    changes: watch::Sender<u64>,
    pending: Arc<Notify>,
    task: AbortHandle,
}

impl Notifier {
    /// Starts the background task. Returns after the first attempt to connect.
    pub(super) async fn start(address: Address) -> Self {
        let (changes, pending) = (watch::Sender::new(0), Arc::new(Notify::new()));
        let (tried, first) = oneshot::channel();
        let task = tokio::spawn(stay_connected(address, changes.clone(), pending.clone(), tried)).abort_handle();
        let notifier = Self { changes, pending, task };
        let _ = first.await;
        notifier
    }

    /// Notifies the subscribers in this process.
    pub(super) fn notify_here(&self) {
        self.changes.send_modify(|number| *number += 1);
    }

    /// Notifies the subscribers in all processes.
    pub(super) fn notify_all(&self) {
        self.notify_here();
        self.pending.notify_one();
    }

    /// Subscribes to the counter of changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Keeps a connection open, and reconnects with a backoff when the connection is lost.
async fn stay_connected(address: Address, changes: watch::Sender<u64>, pending: Arc<Notify>, tried: oneshot::Sender<()>) {
    let mut tried = Some(tried);
    let [first, longest] = BACKOFF;
    let mut backoff = Backoff::new(first, longest);
    loop {
        let started = tokio::time::Instant::now();
        if let Err(error) = listen_and_notify(&address, &changes, &pending, &mut tried).await {
            tried = None;
            tracing::debug!(%error, "not connected for change notifications");
        }
        // Start again with a short delay after a connection that worked for a while.
        if started.elapsed() > longest {
            backoff.reset();
        }
        tokio::time::sleep(backoff.delay()).await;
    }
}

async fn listen_and_notify(
    address: &Address,
    changes: &watch::Sender<u64>,
    pending: &Notify,
    tried: &mut Option<oneshot::Sender<()>>,
) -> Result<(), tokio_postgres::Error> {
    // The payload, by which a process recognises and ignores its own notifications.
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
    let notify = async {
        let schema: Option<String> = client.query_one("SELECT current_schema()", &[]).await?.try_get(0)?;
        let channel = format!("\"helve {}\"", schema.unwrap_or_default().replace('"', "\"\""));
        client.batch_execute(&format!("LISTEN {channel}")).await?;
        // Another process may have changed something while this process was not listening.
        changes.send_modify(|number| *number += 1);
        *tried = None;
        loop {
            pending.notified().await;
            client.batch_execute(&format!("NOTIFY {channel}, '{name}'")).await?;
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::select! {
        ended = listen => ended,
        ended = notify => ended,
    }
}
