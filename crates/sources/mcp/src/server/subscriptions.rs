//! Handles `subscriptions/listen`, with which modern clients listen for changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use helve_mcp_wire::{CODES, Change, Era, META, Meta, RequestId, RpcError};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::hub::{Hub, settle};
use super::modern_checks::ModernClient;
use super::response::OutgoingMessage;
use super::slots::Slot;
use super::{modern, present};

/// Maximum number of resources in one subscription.
const MAX_URIS: usize = 1_000;
/// Maximum number of concurrent requests to the backend for the resources of one subscription.
const AT_ONCE: usize = 16;
/// Timeout of a request to the backend for one resource.
const BACKEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The changes of which a client wants to be notified.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<String>,
}

impl Filter {
    /// Parses the filter in the parameters of a request.
    pub fn read(params: Option<&Value>) -> Result<Self, RpcError> {
        let wrong = |message: &str| RpcError::new(CODES.params, message);
        let wanted = params.and_then(|params| params.get("notifications")).and_then(Value::as_object);
        let wanted = wanted.ok_or_else(|| wrong("`notifications` is missing"))?;
        let flag = |name: &str| match wanted.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(wrong(&format!("`{name}` is neither true nor false"))),
        };
        let uris = match wanted.get("resourceSubscriptions") {
            None => BTreeSet::new(),
            Some(uris) => serde_json::from_value(uris.clone()).map_err(|_| wrong("`resourceSubscriptions` is not a list of strings"))?,
        };
        if uris.len() > MAX_URIS {
            return Err(wrong(&format!("A subscription can have at most {MAX_URIS} resources")));
        }
        Ok(Self { tools: flag("toolsListChanged")?, prompts: flag("promptsListChanged")?, resources: flag("resourcesListChanged")?, uris })
    }

    /// Removes the changes that a server with these capabilities does not announce.
    fn within(self, capabilities: &Value) -> Self {
        let watched = Change::Resource(String::new()).is_declared(capabilities);
        Self {
            tools: self.tools && Change::Tools.is_declared(capabilities),
            prompts: self.prompts && Change::Prompts.is_declared(capabilities),
            resources: self.resources && Change::Resources.is_declared(capabilities),
            uris: if watched { self.uris } else { BTreeSet::new() },
        }
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.contains(uri),
        }
    }

    /// Returns every change that a client with this filter may have missed.
    fn all(&self) -> Vec<Change> {
        let all = Change::LISTS.into_iter().chain(self.uris.iter().cloned().map(Change::Resource));
        all.filter(|change| self.wants(change)).collect()
    }

    fn write(&self) -> Value {
        let mut fields = Map::new();
        for (name, flag) in
            [("toolsListChanged", self.tools), ("promptsListChanged", self.prompts), ("resourcesListChanged", self.resources)]
        {
            if flag {
                fields.insert(name.to_owned(), true.into());
            }
        }
        if !self.uris.is_empty() {
            fields.insert("resourceSubscriptions".to_owned(), json!(self.uris));
        }
        Value::Object(fields)
    }
}

/// A client that listens for changes.
pub(super) struct ChangeListener {
    pub hub: Arc<Hub>,
    pub id: RequestId,
    pub caller: ModernClient,
    pub out: mpsc::Sender<OutgoingMessage>,
    /// The token that is cancelled when the client no longer listens.
    pub cancel: CancellationToken,
    /// The token that is cancelled when the server stops.
    pub stop: CancellationToken,
    pub slot: Slot,
}

impl ChangeListener {
    /// Notifies the client of changes until the client or the server ends the subscription.
    pub async fn run(self, filter: Filter) {
        // Subscribes first, so that no change is missed during the requests to the backend.
        let mut changes = self.hub.backend.changes();
        let mut filter = filter.within(&self.hub.backend.capabilities(Era::Modern));
        filter.uris = self.tell_backend("resources/subscribe", filter.uris).await;
        let mut going = self.send("notifications/subscriptions/acknowledged", json!({"notifications": filter.write()})).await;
        while going {
            let news = tokio::select! {
                biased;
                () = self.cancel.cancelled() => break,
                () = self.stop.cancelled() => break,
                change = changes.recv() => match change {
                    Ok(change) => vec![change],
                    Err(RecvError::Lagged(_)) => filter.all(),
                    Err(RecvError::Closed) => break,
                },
            };
            for change in news.into_iter().filter(|change| filter.wants(change)) {
                let (method, params) = change.notification();
                going = going && self.send(method, params).await;
            }
        }
        let last = if self.cancel.is_cancelled() { OutgoingMessage::Closed } else { self.last_message() };
        let _ = time::timeout(self.hub.options.stall, self.out.send(last)).await;
        self.tell_backend("resources/unsubscribe", filter.uris).await;
        drop(self.slot);
    }

    /// Sends a notification of this subscription. Returns whether the client still listens.
    async fn send(&self, method: &str, params: Value) -> bool {
        let params = self.mark(params);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            sent = self.out.send(OutgoingMessage::notification(method, params)) => sent.is_ok(),
        }
    }

    fn last_message(&self) -> OutgoingMessage {
        let result = self.mark(json!({}));
        OutgoingMessage::response(self.id.clone(), present::modern("subscriptions/listen", result, &self.hub.backend.about()))
    }

    /// Adds the id of this subscription to the `_meta` of an object.
    fn mark(&self, mut object: Value) -> Value {
        if let Some(fields) = object.as_object_mut() {
            Meta::put(fields, json!({META.subscription: self.id}));
        }
        object
    }

    /// Notifies the backend that the client starts or stops watching resources. Returns the resources that the backend accepts: all of
    /// them if the backend does not know the method, because it then announces all changes, or none.
    async fn tell_backend(&self, method: &str, uris: BTreeSet<String>) -> BTreeSet<String> {
        let accepted = stream::iter(uris).map(|uri| async move {
            let token = CancellationToken::new();
            let request = modern::incoming(method, Some(json!({"uri": uri})), &self.caller, None, &token);
            let _guard = token.drop_guard();
            match time::timeout(BACKEND_TIMEOUT, settle(async { self.hub.backend.handle(request).await })).await {
                Ok(Ok(_)) => Some(uri),
                Ok(Err(error)) if error.code == CODES.method => Some(uri),
                Ok(Err(_)) | Err(_) => None,
            }
        });
        let accepted: Vec<Option<String>> = accepted.buffered(AT_ONCE).collect().await;
        accepted.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_and_can_be_had_is_accepted() {
        let params = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": false, "resourcesListChanged": true, "resourceSubscriptions": ["a:b"]}});
        let filter = Filter::read(Some(&params)).unwrap();
        let all = json!({"tools": {"listChanged": true}, "prompts": {"listChanged": true}, "resources": {"subscribe": true}});
        let filter = filter.within(&all);
        assert_eq!(filter.write(), json!({"toolsListChanged": true, "resourceSubscriptions": ["a:b"]}));
        assert_eq!(filter.all(), [Change::Tools, Change::Resource("a:b".to_owned())]);
        assert!(!filter.wants(&Change::Prompts) && !filter.wants(&Change::Resource("c:d".to_owned())));
        assert_eq!(filter.within(&json!({"tools": {}, "resources": {}})).write(), json!({}));
    }

    #[test]
    fn filters_that_are_none_are_refused() {
        let many: Vec<_> = (0..=MAX_URIS).map(|number| number.to_string()).collect();
        for params in [
            json!({}),
            json!({"notifications": []}),
            json!({"notifications": {"toolsListChanged": 1}}),
            json!({"notifications": {"resourceSubscriptions": [1]}}),
            json!({"notifications": {"resourceSubscriptions": many}}),
        ] {
            assert_eq!(Filter::read(Some(&params)).map_err(|error| error.code), Err(CODES.params), "{params}");
        }
    }
}
