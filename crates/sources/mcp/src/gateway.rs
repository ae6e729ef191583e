//! What servers have besides tools, passed on to clients of Helve's own server: resources, prompts, completion, logs.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::join_all;
use helve_mcp_wire::{CODES, Era, PageLimits, Pages, RpcError};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::caller::Downstream;
use crate::client::{How, Trouble};
use crate::serve::{Change, Incoming};
use crate::source::McpSource;
use crate::upstream::Upstream;

/// What an older version says of a resource that is not there.
const NO_RESOURCE: i64 = -32002;

/// The servers behind Helve, as they are now.
#[derive(Debug)]
pub struct Gateway(Vec<Arc<McpSource>>);

impl Gateway {
    /// A gateway to these servers.
    #[must_use]
    pub fn new(sources: Vec<Arc<McpSource>>) -> Self {
        Self(sources)
    }

    /// What the servers can do besides tools, as the object `capabilities`.
    #[must_use]
    pub fn capabilities(&self, era: Era) -> Map<String, Value> {
        let has = |capability: &str| self.with(capability).next().is_some();
        let mut all = Map::new();
        for (capability, value) in [
            ("prompts", json!({"listChanged": true})),
            ("resources", json!({"listChanged": true, "subscribe": true})),
            ("completions", json!({})),
        ] {
            if has(capability) {
                all.insert(capability.to_owned(), value);
            }
        }
        if era == Era::Legacy {
            all.insert("logging".to_owned(), json!({}));
        }
        all
    }

    fn upstreams(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.0.iter().map(|source| source.upstream())
    }

    /// The servers that say they have something.
    fn with<'a>(&'a self, capability: &'a str) -> impl Iterator<Item = &'a Arc<Upstream>> {
        self.upstreams().filter(move |upstream| upstream.now().is_some_and(|connection| connection.can(capability)))
    }

    /// Passes a request on; nothing where it is not one of those that pass.
    pub async fn handle(&self, request: &Incoming) -> Option<Result<Value, RpcError>> {
        let passed = match request.method.as_str() {
            "resources/list" => self.list(request, "resources", "resources", "uri").await,
            "resources/templates/list" => self.list(request, "resources", "resourceTemplates", "uriTemplate").await,
            "prompts/list" => self.list(request, "prompts", "prompts", "name").await,
            "prompts/get" => self.prompt(request).await,
            "resources/subscribe" | "resources/unsubscribe" if request.from.era == Era::Modern => self.watch(request).await,
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                let uri = request.params.get("uri").and_then(Value::as_str).unwrap_or_default();
                self.resource(request, uri).await
            }
            "completion/complete" => self.complete(request).await,
            "logging/setLevel" => self.level(request).await,
            _ => return None,
        };
        Some(passed)
    }

    /// One list out of those of all servers. A server that fails costs only its own part, unless it is the only one.
    async fn list(&self, request: &Incoming, capability: &str, field: &'static str, key: &str) -> Result<Value, RpcError> {
        let lists = self.with(capability).map(|upstream| async move { (upstream, pages(upstream, request, field).await) });
        let lists = join_all(lists).await;
        let only = lists.len() == 1;
        let (mut items, mut seen) = (Vec::new(), HashSet::new());
        for (upstream, list) in lists {
            match list {
                Err(error) if only => return Err(error),
                Err(error) => tracing::warn!(server = upstream.definition.name, %error, "a list of the server is left out"),
                Ok(list) => {
                    for mut item in list {
                        if field == "prompts" {
                            rename(&mut item, upstream.definition.prefix());
                        }
                        if item.get(key).and_then(Value::as_str).is_some_and(|name| seen.insert(name.to_owned())) {
                            items.push(item);
                        }
                    }
                }
            }
        }
        Ok(json!({field: items}))
    }

    async fn prompt(&self, request: &Incoming) -> Result<Value, RpcError> {
        let name = request.params.get("name").and_then(Value::as_str).unwrap_or_default();
        let (upstream, own) = self.by_prefix("prompts", name).ok_or_else(|| unknown("prompt", name))?;
        let mut params = request.params.clone();
        params["name"] = json!(own);
        pass(upstream, request, params).await
    }

    /// The server whose prefix a name has, and the name without it.
    fn by_prefix<'a>(&'a self, capability: &'a str, name: &'a str) -> Option<(&'a Arc<Upstream>, &'a str)> {
        let longest = self.with(capability).filter_map(|upstream| {
            let own = match upstream.definition.prefix() {
                "" => name,
                prefix => name.strip_prefix(prefix)?.strip_prefix('_')?,
            };
            Some((upstream, own))
        });
        longest.max_by_key(|(upstream, _)| upstream.definition.prefix().len())
    }

    /// Asks the servers one after the other: an address does not say whose it is.
    async fn resource(&self, request: &Incoming, uri: &str) -> Result<Value, RpcError> {
        let mut last = unknown("resource", uri);
        for upstream in self.with("resources") {
            match pass(upstream, request, request.params.clone()).await {
                Err(error) if [CODES.params, NO_RESOURCE, CODES.method].contains(&error.code) => last = error,
                answered => return answered,
            }
        }
        Err(last)
    }

    /// Watches a resource for a client of the newer era, at every server that may have it.
    async fn watch(&self, request: &Incoming) -> Result<Value, RpcError> {
        let uri = request.params.get("uri").and_then(Value::as_str).unwrap_or_default();
        let more = request.method == "resources/subscribe";
        let watched = self.with("resources").map(|upstream| upstream.watch(uri, more));
        for trouble in join_all(watched).await.into_iter().filter_map(Result::err) {
            tracing::debug!(%trouble, "a server does not tell of a resource");
        }
        Ok(json!({}))
    }

    async fn complete(&self, request: &Incoming) -> Result<Value, RpcError> {
        let text = |path: &str| request.params.pointer(path).and_then(Value::as_str);
        let mut params = request.params.clone();
        let found = match text("/ref/type") {
            Some("ref/prompt") => {
                let found = self.by_prefix("completions", text("/ref/name").unwrap_or_default());
                if let Some((_, own)) = found {
                    params["ref"]["name"] = json!(own);
                }
                found.map(|(upstream, _)| upstream)
            }
            _ => None,
        };
        if let Some(upstream) = found {
            return pass(upstream, request, params).await;
        }
        let mut last = unknown("reference", text("/ref/uri").unwrap_or_default());
        for upstream in self.with("completions") {
            match pass(upstream, request, request.params.clone()).await {
                Err(error) if error.code == CODES.params => last = error,
                answered => return answered,
            }
        }
        Err(last)
    }

    /// How much every server is to tell this client.
    async fn level(&self, request: &Incoming) -> Result<Value, RpcError> {
        let told = self.upstreams().map(|upstream| pass(upstream, request, request.params.clone()));
        for error in join_all(told).await.into_iter().filter_map(Result::err) {
            tracing::debug!(%error, "a server does not take a level for its logs");
        }
        Ok(json!({}))
    }

    /// A session of a client is over.
    pub fn session_ended(&self, session: &str) {
        for upstream in self.upstreams() {
            upstream.end_session(session);
        }
    }

    /// What changes at each server.
    pub fn changes(&self) -> impl Iterator<Item = (&Arc<McpSource>, broadcast::Receiver<Change>)> {
        self.0.iter().map(|source| (source, source.upstream().changes().subscribe()))
    }
}

fn rename(item: &mut Value, prefix: &str) {
    if let Some(name) = item.get("name").and_then(Value::as_str).filter(|_| !prefix.is_empty()) {
        item["name"] = json!(format!("{prefix}_{name}"));
    }
}

fn unknown(what: &str, name: &str) -> RpcError {
    let name = helve_core::printable::shorten(&helve_core::printable::escape_line(name), 200);
    RpcError { code: CODES.params, message: format!("there is no {what} `{name}`"), data: None }
}

async fn pass(upstream: &Arc<Upstream>, request: &Incoming, params: Value) -> Result<Value, RpcError> {
    forward(upstream, &request.method, params, &request.from, &request.cancel).await
}

async fn forward(
    upstream: &Arc<Upstream>,
    method: &str,
    params: Value,
    from: &Downstream,
    cancel: &CancellationToken,
) -> Result<Value, RpcError> {
    let params = if let Value::Object(params) = params { params } else { Map::new() };
    upstream.pass(method, params, from, How { cancel: cancel.clone(), ..How::default() }).await.map_err(|trouble| match trouble {
        Trouble::Refused(error) => error,
        other => RpcError { code: CODES.internal, message: format!("the server `{}`: {other}", upstream.definition.name), data: None },
    })
}

/// All pages of a list of one server.
async fn pages(upstream: &Arc<Upstream>, request: &Incoming, field: &'static str) -> Result<Vec<Value>, RpcError> {
    let mut pages = Pages::new(field, PageLimits::default());
    let mut params = request.params.clone();
    loop {
        let answer = pass(upstream, request, params.clone()).await?;
        match pages.take(answer) {
            Ok(Some(next)) => params["cursor"] = json!(next),
            Ok(None) => return Ok(pages.items()),
            Err(trouble) => {
                tracing::warn!(server = upstream.definition.name, %trouble, "a list of the server");
                return Ok(pages.items());
            }
        }
    }
}
