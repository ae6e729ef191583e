//! Sends new approval requests to the project's webhook.

use std::sync::Arc;
use std::time::Duration;

use helve_fetch::{Fetch, HeaderMap, Method, Reach, Request, Url, header, read_url};
use helve_tools::StoreHandle;
use serde_json::json;
use tokio::task::JoinSet;

use super::Helve;

/// Maximum number of attempts to send a notification.
const ATTEMPTS: u32 = 3;
/// Timeout for pending notifications when a command ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Notifications that are being sent.
pub(super) type PendingNotifications = Arc<parking_lot::Mutex<JoinSet<()>>>;

impl Helve {
    /// Starts sending every approval request that is stored from now on to the webhook of a trusted project.
    pub(super) fn notify_webhook(&self, store: &StoreHandle) {
        let report = self.project().unwrap_or_default();
        let Some(address) = report.webhook.as_deref() else { return };
        let Ok(url) = read_url(address) else {
            tracing::warn!("`approvals.webhook` in helve.yaml is not a valid URL; approval requests are not sent to it");
            return;
        };
        let (fetch, notifications, redactor) = (self.fetch(), self.notifications.clone(), self.redactor().clone());
        store.on_request(move |approval| {
            let mut document = json!({"type": "approval_requested", "approval": approval.for_programs()});
            redactor.clean_value(&mut document);
            notifications.lock().spawn(notify(fetch.clone(), url.clone(), document.to_string()));
        });
    }

    /// Waits until pending notifications of the webhook are sent, up to a timeout. Call this method before the process ends.
    pub async fn flush_webhook(&self) {
        let mut pending = std::mem::take(&mut *self.notifications.lock());
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, async { while pending.join_next().await.is_some() {} }).await;
    }
}

async fn notify(fetch: Fetch, url: Url, body: String) {
    for attempt in 1..=ATTEMPTS {
        let mut request = Request::new(Method::POST, url.clone());
        request.headers = HeaderMap::from_iter([(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"))]);
        request.body = Some(body.clone().into_bytes());
        request.reach = Reach::Any;
        match fetch.send(request).await {
            Ok(response) if response.status.is_success() => return,
            Ok(response) => tracing::warn!(status = %response.status, attempt, "the webhook rejected an approval request"),
            Err(error) => tracing::warn!(%error, attempt, "cannot reach the webhook"),
        }
        tokio::time::sleep(Duration::from_millis(500) * attempt).await;
    }
}
