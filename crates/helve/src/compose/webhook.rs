//! Tells an address of new requests, so that whoever answers need not look.

use std::sync::Arc;
use std::time::Duration;

use helve_fetch::{Fetch, HeaderMap, Method, Reach, Request, Url, header, read_url};
use helve_tools::StoreHandle;
use serde_json::json;
use tokio::task::JoinSet;

use super::Helve;

/// How often it is tried.
const TRIES: u32 = 3;
/// How long a command waits at its end for what is being told.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// What is being told now.
pub(super) type Telling = Arc<parking_lot::Mutex<JoinSet<()>>>;

impl Helve {
    /// Tells the project's webhook of every request that is recorded from now on, once the folder is trusted.
    pub(super) fn tell_webhook(&self, store: &StoreHandle) {
        let report = self.project().unwrap_or_default();
        let Some(address) = report.webhook.as_deref() else { return };
        let Ok(url) = read_url(address) else {
            tracing::warn!("the webhook's address cannot be understood; nobody is told of requests");
            return;
        };
        let (fetch, telling, redactor) = (self.fetch(), self.telling.clone(), self.redactor().clone());
        store.on_request(move |approval| {
            let mut document = json!({"type": "approval_requested", "approval": approval.for_programs()});
            redactor.clean_value(&mut document);
            let mut telling = telling.lock();
            telling.spawn(tell(fetch.clone(), url.clone(), document.to_string()));
        });
    }

    /// Waits for what is being told, for a moment: for commands that end.
    pub async fn told(&self) {
        let mut telling = std::mem::take(&mut *self.telling.lock());
        let _ = tokio::time::timeout(LAST_MOMENT, async { while telling.join_next().await.is_some() {} }).await;
    }
}

async fn tell(fetch: Fetch, url: Url, body: String) {
    for attempt in 1..=TRIES {
        let mut request = Request::new(Method::POST, url.clone());
        request.headers = HeaderMap::from_iter([(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"))]);
        request.body = Some(body.clone().into_bytes());
        request.reach = Reach::Any;
        match fetch.send(request).await {
            Ok(response) if response.status.is_success() => return,
            Ok(response) => tracing::warn!(status = %response.status, attempt, "the webhook did not take a request"),
            Err(error) => tracing::warn!(%error, attempt, "the webhook was not told of a request"),
        }
        tokio::time::sleep(Duration::from_millis(500) * attempt).await;
    }
}
