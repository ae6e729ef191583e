//! Forwards requests of Helve's MCP clients to the upstream servers, for all features but tools: resources, prompts, completion, logs.

mod crossing;

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::join_all;
use helve_mcp_wire::{CODES, Change, Era, PageLimits, Pages, RpcError};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::client::{McpSource, RequestError, RequestOptions, Upstream};
use crate::downstream::Downstream;
use crate::server::ClientRequest;

/// The legacy error code for an unknown resource.
const NO_RESOURCE: i64 = -32002;

/// The upstream servers whose resources, prompts, completions and logs Helve's own server provides.
#[derive(Debug)]
pub struct Gateway(Vec<Arc<McpSource>>);

impl Gateway {
    /// Creates a gateway to the servers of these sources.
    #[must_use]
    pub fn new(sources: Vec<Arc<McpSource>>) -> Self {
        Self(sources)
    }

    /// Returns the capabilities of all connected servers except tools, in the form of the field `capabilities`.
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

    /// Returns the connected servers with a capability.
    fn with<'a>(&'a self, capability: &'a str) -> impl Iterator<Item = &'a Arc<Upstream>> {
        self.upstreams().filter(move |upstream| upstream.now().is_some_and(|connection| connection.can(capability)))
    }

    /// Handles a client's request. Returns `None` if the gateway does not handle the method.
    pub async fn handle(&self, request: &ClientRequest) -> Option<Result<Value, RpcError>> {
        let passed = match request.method.as_str() {
            "resources/list" => self.list(request, "resources", "resources", "uri").await,
            "resources/templates/list" => self.list(request, "resources", "resourceTemplates", "uriTemplate").await,
            "prompts/list" => self.list(request, "prompts", "prompts", "name").await,
            "prompts/get" => self.prompt(request).await,
            "resources/subscribe" | "resources/unsubscribe" if request.from.era == Era::Modern => self.watch(request).await,
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                let uri = request.params.get("uri").and_then(Value::as_str).unwrap_or_default();
                // The URI of a resource does not identify its server.
                self.first_response("resources", request, unknown("resource", uri), &[CODES.params, NO_RESOURCE, CODES.method]).await
            }
            "completion/complete" => self.complete(request).await,
            "logging/setLevel" => self.level(request).await,
            _ => return None,
        };
        Some(passed)
    }

    /// Merges the lists of all servers. Omits the list of a server that fails, unless it is the only server.
    async fn list(&self, request: &ClientRequest, capability: &str, field: &'static str, key: &str) -> Result<Value, RpcError> {
        let lists = self.with(capability).map(|upstream| async move { (upstream, pages(upstream, request, field).await) });
        let lists = join_all(lists).await;
        let only = lists.len() == 1;
        let (mut items, mut seen) = (Vec::new(), HashSet::new());
        for (upstream, list) in lists {
            match list {
                Err(error) if only => return Err(error),
                Err(error) => tracing::warn!(server = upstream.definition.name, %error, "a list of an MCP server is left out"),
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

    async fn prompt(&self, request: &ClientRequest) -> Result<Value, RpcError> {
        let name = request.params.get("name").and_then(Value::as_str).unwrap_or_default();
        let (upstream, own) = self.by_prefix("prompts", name).ok_or_else(|| unknown("prompt", name))?;
        let mut params = request.params.clone();
        params["name"] = json!(own);
        pass(upstream, request, params).await
    }

    /// Returns the server with the longest prefix that matches a name, and the name without the prefix.
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

    /// Sends a request to one server after the other, until the response is not an error with one of the codes in `skip`.
    async fn first_response(&self, capability: &str, request: &ClientRequest, unknown: RpcError, skip: &[i64]) -> Result<Value, RpcError> {
        let mut last = unknown;
        for upstream in self.with(capability) {
            match pass(upstream, request, request.params.clone()).await {
                Err(error) if skip.contains(&error.code) => last = error,
                result => return result,
            }
        }
        Err(last)
    }

    /// Starts or stops watching a resource for a modern client, on every server that may have the resource.
    async fn watch(&self, request: &ClientRequest) -> Result<Value, RpcError> {
        let uri = request.params.get("uri").and_then(Value::as_str).unwrap_or_default();
        let more = request.method == "resources/subscribe";
        let watched = self.with("resources").map(|upstream| upstream.watch(uri, more));
        for error in join_all(watched).await.into_iter().filter_map(Result::err) {
            tracing::debug!(%error, "MCP server refused the subscription to a resource");
        }
        Ok(json!({}))
    }

    async fn complete(&self, request: &ClientRequest) -> Result<Value, RpcError> {
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
        self.first_response("completions", request, unknown("reference", text("/ref/uri").unwrap_or_default()), &[CODES.params]).await
    }

    /// Sets the client's log level on every server.
    async fn level(&self, request: &ClientRequest) -> Result<Value, RpcError> {
        let requests = self.upstreams().map(|upstream| pass(upstream, request, request.params.clone()));
        for error in join_all(requests).await.into_iter().filter_map(Result::err) {
            tracing::debug!(%error, "MCP server refused a log level");
        }
        Ok(json!({}))
    }

    /// Ends a client session on all servers.
    pub fn session_ended(&self, session: &str) {
        for upstream in self.upstreams() {
            upstream.end_session(session);
        }
    }

    /// Subscribes to the changes of each server.
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
    RpcError::new(CODES.params, format!("unknown {what} `{name}`"))
}

async fn pass(upstream: &Arc<Upstream>, request: &ClientRequest, params: Value) -> Result<Value, RpcError> {
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
    upstream.pass(method, params, from, RequestOptions { cancel: cancel.clone(), ..RequestOptions::default() }).await.map_err(|error| {
        match error {
            RequestError::Rpc(error) => error,
            other => RpcError::new(CODES.internal, format!("the server `{}`: {other}", upstream.definition.name)),
        }
    })
}

/// Requests all pages of a list from one server, and returns the items.
async fn pages(upstream: &Arc<Upstream>, request: &ClientRequest, field: &'static str) -> Result<Vec<Value>, RpcError> {
    let mut pages = Pages::new(field, PageLimits::default());
    let mut params = request.params.clone();
    loop {
        let response = pass(upstream, request, params.clone()).await?;
        match pages.take(response) {
            Ok(Some(next)) => params["cursor"] = json!(next),
            Ok(None) => return Ok(pages.items()),
            Err(error) => {
                tracing::warn!(server = upstream.definition.name, %error, "a list of an MCP server is incomplete");
                return Ok(pages.items());
            }
        }
    }
}
