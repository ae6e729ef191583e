//! A tool of a server: a call becomes a request, and what comes back an output.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::{CallContext, Denial, Digest, DynTool, ErrorKind, Output, ToolCall, ToolError, ToolSpec};
use helve_mcp_wire::{CODES, HeaderParam, RpcError};
use serde_json::{Map, Value, json};

use crate::caller::{BackChannel, Passage};
use crate::client::{How, Trouble};
use crate::content;
use crate::upstream::Upstream;

/// Where the words of the protocol are kept beside an error.
pub(crate) const PROTOCOL: &str = "mcp";

/// One tool of a server.
pub(crate) struct McpTool {
    pub(crate) spec: Arc<ToolSpec>,
    /// What the server calls it.
    pub(crate) name: Box<str>,
    /// The definition that was agreed to.
    pub(crate) definition: Digest,
    /// Arguments that also stand in headers.
    pub(crate) headers: Vec<HeaderParam>,
    pub(crate) upstream: Arc<Upstream>,
}

impl DynTool for McpTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            if !self.upstream.is_approved(&self.name, self.definition) {
                let name = &self.upstream.definition.name;
                let message = format!("the server `{name}` has changed this tool, and nobody has agreed to it yet");
                return Err(ToolError::denied(Denial::Unpinned, message));
            }
            let result = self.ask(call, cx).await.map_err(|trouble| failure(&self.upstream.definition.name, trouble))?;
            if result.get("resultType").and_then(Value::as_str) == Some("input_required") {
                return Err(
                    ToolError::failed("the server needs to know more before it can go on").with(PROTOCOL, json!({"result": result}))
                );
            }
            content::read(result)
        })
    }
}

impl McpTool {
    async fn ask(&self, call: &ToolCall, cx: &CallContext) -> Result<Value, Trouble> {
        let mut params = Map::new();
        params.insert("name".to_owned(), json!(self.name));
        params.insert("arguments".to_owned(), call.arguments.clone());
        let headers = self.headers.iter().filter_map(|param| Some((param.header.clone(), param.value(&call.arguments)?))).collect();
        if let Some(passage) = cx.brought::<Passage>() {
            params.extend(passage.extra.clone());
            return self.upstream.pass("tools/call", params, &passage.from, cx.cancelled(), headers).await;
        }
        let channel: Arc<dyn BackChannel> = Arc::new(Told(cx.clone()));
        let how = How { cancel: cx.cancelled().clone(), channel: Some(channel), progress: true, headers, ..How::default() };
        self.upstream.ask("tools/call", params, how).await
    }
}

/// Progress of a call of Helve's own.
struct Told(CallContext);

impl BackChannel for Told {
    fn notify(&self, method: &str, params: Value) {
        if method != "notifications/progress" {
            return;
        }
        let number = |field: &str| params.get(field).and_then(Value::as_f64);
        let fraction =
            number("progress").zip(number("total")).filter(|(_, total)| *total > 0.0).map(|(done, total)| (done / total).clamp(0.0, 1.0));
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        self.0.progress(fraction, helve_core::printable::shorten(message, 500));
    }

    fn ask(&self, method: &str, _: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        let answer = match method {
            // Nobody is there to be asked, which is not the same as a no.
            "elicitation/create" => Ok(json!({"action": "cancel"})),
            _ => Err(RpcError { code: CODES.method, message: "this is not offered here".to_owned(), data: None }),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// What a trouble means for a call.
pub(crate) fn failure(server: &str, trouble: Trouble) -> ToolError {
    let says = |kind, words: &dyn std::fmt::Display| ToolError::new(kind, format!("the server `{server}`: {words}"));
    match trouble {
        Trouble::Refused(error) => {
            let kind = if error.code == CODES.params { ErrorKind::InvalidParameters } else { ErrorKind::Failed };
            says(kind, &helve_core::printable::shorten(&error.message, 2000)).with(PROTOCOL, json!({"error": error}))
        }
        Trouble::Cancelled => ToolError::cancelled(),
        Trouble::Unreachable(_) | Trouble::Forgotten | Trouble::NotStarted(_) => says(ErrorKind::Unreachable, &trouble),
        // Only what may be done twice is tried again, and that is for its rules to say.
        Trouble::Gone(_) => says(ErrorKind::Interrupted, &trouble).transient(true),
        Trouble::Late(_) => says(ErrorKind::Timeout, &trouble),
        Trouble::TooLarge(_) => says(ErrorKind::InvalidOutput, &trouble),
        Trouble::Status { status: 502..=504, .. } => says(ErrorKind::Unreachable, &trouble),
        Trouble::Status { status: 429, .. } => says(ErrorKind::RateLimited, &trouble),
        Trouble::Protocol(_) | Trouble::Status { .. } | Trouble::Unauthorised(_) => says(ErrorKind::Failed, &trouble),
    }
}
