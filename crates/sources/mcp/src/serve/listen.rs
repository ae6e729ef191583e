//! Clients of the newer era that listen for changes: `subscriptions/listen`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use helve_mcp_wire::{CODES, Era, META, RequestId, RpcError};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::hub::{Hub, error, settle};
use super::ladder::Caller;
use super::places::Place;
use super::session::{declares, describe};
use super::stream::Out;
use super::{Change, modern, present};

/// Resources that one client may listen for.
const MAX_URIS: usize = 1_000;
/// How many of them the backend is told of at the same time, and how long it has for each.
const AT_ONCE: usize = 16;
const PATIENCE: Duration = Duration::from_secs(5);

/// What a client wants to hear of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<String>,
}

impl Filter {
    /// Reads what a request wants.
    pub fn read(params: Option<&Value>) -> Result<Self, RpcError> {
        let wrong = |message: &str| error(CODES.params, message);
        let wanted = params.and_then(|params| params.get("notifications")).and_then(Value::as_object);
        let wanted = wanted.ok_or_else(|| wrong("`notifications` must say what to listen for"))?;
        let flag = |name: &str| match wanted.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(wrong(&format!("`{name}` is neither true nor false"))),
        };
        let uris = match wanted.get("resourceSubscriptions") {
            None => BTreeSet::new(),
            Some(uris) => serde_json::from_value(uris.clone()).map_err(|_| wrong("`resourceSubscriptions` is no list of texts"))?,
        };
        if uris.len() > MAX_URIS {
            return Err(wrong(&format!("One can listen for {MAX_URIS} resources at most")));
        }
        Ok(Self { tools: flag("toolsListChanged")?, prompts: flag("promptsListChanged")?, resources: flag("resourcesListChanged")?, uris })
    }

    /// What remains of it for a server that can do this.
    fn within(self, capabilities: &Value) -> Self {
        let watched = declares(capabilities, &Change::Resource(String::new()));
        Self {
            tools: self.tools && declares(capabilities, &Change::Tools),
            prompts: self.prompts && declares(capabilities, &Change::Prompts),
            resources: self.resources && declares(capabilities, &Change::Resources),
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

    /// Everything that somebody who wants this may have missed.
    fn all(&self) -> Vec<Change> {
        let lists = [Change::Tools, Change::Prompts, Change::Resources];
        let all = lists.into_iter().chain(self.uris.iter().cloned().map(Change::Resource));
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

/// A client that listens.
pub(super) struct Listener {
    pub hub: Arc<Hub>,
    pub id: RequestId,
    pub caller: Caller,
    pub out: mpsc::Sender<Out>,
    /// Fires when the client does not listen any more.
    pub cancel: CancellationToken,
    /// Fires when the server does not speak any more.
    pub stop: CancellationToken,
    pub place: Place,
}

impl Listener {
    /// Tells the client of changes until one of the two sides ends it.
    pub async fn run(self, filter: Filter) {
        // From here on nothing is missed, also not while the backend is told.
        let mut changes = self.hub.backend.changes();
        let mut filter = filter.within(&self.hub.backend.capabilities(Era::Modern));
        filter.uris = self.tell_backend("resources/subscribe", filter.uris).await;
        let mut going = self.say("notifications/subscriptions/acknowledged", json!({"notifications": filter.write()})).await;
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
                let (method, params) = describe(&change);
                going = going && self.say(method, params).await;
            }
        }
        let last = if self.cancel.is_cancelled() { Out::Gone } else { self.farewell() };
        let _ = time::timeout(self.hub.options.stall, self.out.send(last)).await;
        self.tell_backend("resources/unsubscribe", filter.uris).await;
        drop(self.place);
    }

    /// Sends a notification with the mark of this subscription; whether there is still somebody to send it to.
    async fn say(&self, method: &str, mut params: Value) -> bool {
        params["_meta"] = json!({META.subscription: self.id});
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            sent = self.out.send(Out::note(method, params)) => sent.is_ok(),
        }
    }

    fn farewell(&self) -> Out {
        let result = json!({"_meta": {META.subscription: self.id}});
        Out::answer(self.id.clone(), present::modern("subscriptions/listen", result, &self.hub.backend.about()))
    }

    /// Tells the backend which resources somebody listens for, or does not any more; those that it takes. One that does not know of
    /// subscriptions tells of all changes, or of none.
    async fn tell_backend(&self, method: &str, uris: BTreeSet<String>) -> BTreeSet<String> {
        let told = stream::iter(uris).map(|uri| async move {
            let token = CancellationToken::new();
            let request = modern::incoming(method, Some(json!({"uri": uri})), &self.caller, None, &token);
            let _guard = token.drop_guard();
            match time::timeout(PATIENCE, settle(async { self.hub.backend.handle(request).await })).await {
                Ok(Ok(_)) => Some(uri),
                Ok(Err(error)) if error.code == CODES.method => Some(uri),
                Ok(Err(_)) | Err(_) => None,
            }
        });
        let taken: Vec<Option<String>> = told.buffered(AT_ONCE).collect().await;
        taken.into_iter().flatten().collect()
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
