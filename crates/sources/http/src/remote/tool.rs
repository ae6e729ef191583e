//! A tool of a remote tool server. A call sends a POST request to `/execute`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::json::{self, JsonLimits};
use helve_core::{CallContext, DynTool, Output, Redactor, ToolCall, ToolError, ToolSpec};
use helve_fetch::{Fetch, FetchLimits, HeaderValue, Method, Reach, Request, Response, Url, header};
use serde_json::{Value, json};

use crate::auth::Credentials;
use crate::failure;

const RESPONSE_LIMITS: JsonLimits = JsonLimits { bytes: 1 << 20, depth: 64, nodes: 200_000 };

/// A remote tool server, which all its tools share.
pub(super) struct Server {
    execute: Url,
    credentials: Credentials,
    time: Duration,
    fetch: Fetch,
    redactor: Redactor,
}

impl Server {
    pub(super) fn new(url: &Url, credentials: Credentials, time: Duration, fetch: &Fetch, redactor: &Redactor) -> Self {
        let mut execute = url.clone();
        // An http URL always has a path.
        if let Ok(mut path) = execute.path_segments_mut() {
            path.pop_if_empty().push("execute");
        }
        Self { execute, credentials, time, fetch: fetch.clone(), redactor: redactor.clone() }
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Sends a request with the server's API key. Returns an error for any status other than success.
    pub(super) async fn send(&self, request: Request) -> Result<Response, ToolError> {
        let response = self.credentials.send(&self.fetch, request).await?;
        if response.status.is_success() { Ok(response) } else { Err(failure::of_status(&response, &[], &self.redactor)) }
    }

    async fn execute(&self, name: &str, arguments: &Value) -> Result<Output, ToolError> {
        let mut request = Request::new(Method::POST, self.execute.clone());
        request.reach = Reach::Any;
        request.limits = FetchLimits { time: self.time, bytes: RESPONSE_LIMITS.bytes as u64, ..FetchLimits::default() };
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.body = Some(json!({"name": name, "parameters": arguments}).to_string().into_bytes());
        let response = self.send(request).await?;
        let excerpt = || failure::excerpt(&response.body, &self.redactor);
        let mut body = json::parse(&response.body, RESPONSE_LIMITS)
            .map_err(|error| ToolError::failed(format!("the server sent an invalid response: {error}: {}", excerpt())))?;
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            let message = error.as_str().or_else(|| error.get("message")?.as_str()).map_or_else(|| error.to_string(), str::to_owned);
            return Err(ToolError::failed(failure::excerpt(message.as_bytes(), &self.redactor)));
        }
        match body.get_mut("output") {
            Some(output) => Ok(Output::data(output.take()).with_metadata("status", json!(response.status.as_u16()))),
            None => Err(ToolError::failed(format!("the server sent an invalid response: neither `output` nor `error`: {}", excerpt()))),
        }
    }
}

/// A tool of a remote tool server.
pub(super) struct RemoteTool {
    pub(super) spec: Arc<ToolSpec>,
    /// The tool's name on the server.
    pub(super) name: Box<str>,
    pub(super) server: Arc<Server>,
}

impl DynTool for RemoteTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cx.cancelled() => Err(ToolError::cancelled()),
                result = self.server.execute(&self.name, &call.arguments) => result,
            }
        })
    }
}
