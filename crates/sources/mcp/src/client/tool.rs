//! A tool of a server. Converts a call to a request, and the result of the request to an output or an input request.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::{
    CallContext, Denial, Digest, DynTool, ErrorKind, InputNeeded, InputResponse, Output, ToolCall, ToolError, ToolSpec, printable,
};
use helve_mcp_wire::{CODES, Era, HeaderParam, InputRequired, InputResponses, Meta, RpcError};
use serde_json::{Map, Value, json};

use super::connection::RequestOptions;
use super::elicitation::{self, RETRY_DELAY};
use super::error::RequestError;
use super::held_call::{CallProgress, HeldCall, InputAsk};
use super::upstream::{INPUT_KEY, Upstream, request_digest};
use crate::content;
use crate::downstream::{BackChannel, Passage};

/// The field of an error's `details` that contains the server's JSON-RPC error.
const PROTOCOL: &str = "mcp";
/// Maximum number of times that a request is sent because the server wants it repeated without asking for input.
const MAX_ROUNDS: u32 = 10;

/// One tool of a server.
pub(crate) struct McpTool {
    pub(crate) spec: Arc<ToolSpec>,
    /// The tool's name on the server.
    pub(crate) name: Arc<str>,
    /// The digest of the approved definition.
    pub(crate) definition: Digest,
    /// The arguments that HTTP headers repeat.
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
                return Err(self.failure(RequestError::NotApproved));
            }
            match cx.extension::<Passage>() {
                Some(passage) => self.pass(call, cx, passage).await,
                None => self.request(call, cx).await,
            }
        })
    }

    fn forget(&self, call: &ToolCall, state: &Value) {
        // For a call of a client, the state is the name itself.
        if let Some(name) = state.get("parked").unwrap_or(state).as_str() {
            // Dropping the call cancels it on the server.
            drop(self.upstream.parked().take(name, self.digest(call)));
        }
    }
}

impl McpTool {
    fn params(&self, call: &ToolCall) -> Map<String, Value> {
        Map::from_iter([("name".to_owned(), json!(self.name)), ("arguments".to_owned(), call.arguments.clone())])
    }

    /// Returns the options of every call: the request is sent only if the tool's definition is still approved.
    fn options(&self) -> RequestOptions {
        RequestOptions { approved: Some((self.name.clone(), self.definition)), ..RequestOptions::default() }
    }

    fn param_headers(&self, call: &ToolCall) -> Vec<(String, String)> {
        self.headers.iter().filter_map(|param| Some((param.header.clone(), param.value(&call.arguments)?))).collect()
    }

    /// Forwards a client's call to the server. The client receives the server's input requests.
    async fn pass(&self, call: &ToolCall, cx: &CallContext, passage: &Passage) -> Result<Output, ToolError> {
        let mut params = self.params(call);
        passage.input.clone().put(&mut params);
        if let Some(meta) = &passage.meta {
            Meta::put(&mut params, meta.clone());
        }
        let options = RequestOptions { cancel: cx.cancellation().clone(), headers: self.param_headers(call), ..self.options() };
        let passed = self.upstream.pass("tools/call", params, &passage.from, options).await;
        match InputRequired::read(passed.map_err(|error| self.failure(error))?) {
            Ok(required) => {
                passage.require(required);
                Err(ToolError::failed("the server needs input before it can continue"))
            }
            Err(result) => content::read(result),
        }
    }

    /// Runs a call that Helve itself makes, for an agent or a user. A person receives the server's input requests.
    async fn request(&self, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
        if let Some(given) = cx.given()
            && let Some(name) = given.state.get("parked").and_then(Value::as_str)
        {
            return self.resume(name, given, call, cx).await;
        }
        match self.upstream.era().await.map_err(|error| self.failure(error))? {
            Era::Modern => self.request_modern(call, cx).await,
            Era::Legacy => self.follow(self.start(call, cx), call, cx).await,
        }
    }

    async fn request_modern(&self, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
        let mut params = self.params(call);
        if let Some(given) = cx.given() {
            elicitation::responses(given).put(&mut params);
        }
        let options = RequestOptions {
            cancel: cx.cancellation().clone(),
            channel: Some(Arc::new(ProgressChannel(cx.clone()))),
            progress: true,
            headers: self.param_headers(call),
            ..self.options()
        };
        for round in 1..=MAX_ROUNDS {
            let result = self.upstream.request("tools/call", &params, &options).await;
            let required = match InputRequired::read(result.map_err(|error| self.failure(error))?) {
                Ok(required) => required,
                Err(result) => return content::read(result),
            };
            if let Some(needed) = elicitation::read(&required)? {
                return Err(ToolError::needs_input(needed));
            }
            // Without an input request, the server only wants the request to be repeated.
            let before = InputResponses::take(&mut params);
            InputResponses { responses: None, state: required.state.or(before.state) }.put(&mut params);
            tokio::time::sleep(RETRY_DELAY * round).await;
        }
        Err(ToolError::failed(format!("the server asked to repeat the request {MAX_ROUNDS} times and returned no result")))
    }

    /// Starts a call to a legacy server.
    fn start(&self, call: &ToolCall, cx: &CallContext) -> HeldCall {
        let options = RequestOptions { channel: Some(Arc::new(ProgressChannel(cx.clone()))), progress: true, ..self.options() };
        HeldCall::start(&self.upstream, "tools/call", self.params(call), options)
    }

    /// Waits until a call to a legacy server ends, or until the server sends an input request.
    async fn follow(&self, held: HeldCall, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
        match held.advance(cx.cancellation()).await {
            CallProgress::Over(result) => content::read(result.map_err(|error| self.failure(error))?),
            CallProgress::NeedsInput(held, request) => self.park(held, request, call, cx),
        }
    }

    /// Parks a call until a person has responded to the server's input request.
    fn park(&self, held: HeldCall, request: InputAsk, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
        let mut needed = InputNeeded::new(vec![elicitation::form(INPUT_KEY, &request.params)?], Value::Null);
        if !cx.can_ask() {
            // No person can respond. Dropping the call cancels it on the server.
            return Err(ToolError::failed(needed.summary()));
        }
        let Some(name) = self.upstream.parked().put(held, request.response, self.digest(call)) else {
            return Err(ToolError::failed("too many calls to this server are waiting for input; provide or deny some of it first"));
        };
        needed.state = json!({"parked": name});
        Err(ToolError::needs_input(needed))
    }

    /// Resumes a parked call with the input that a person gave.
    async fn resume(&self, name: &str, given: &InputResponse, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
        let Some((held, response)) = self.upstream.parked().take(name, self.digest(call)) else {
            let message = "the server no longer waits for this input: the input came too late, or the connection was lost";
            return Err(ToolError::new(ErrorKind::Interrupted, message));
        };
        held.set_channel(Some(Arc::new(ProgressChannel(cx.clone()))));
        // If the server is gone by now, waiting for the result fails.
        let _ = response.send(elicitation::response(given, INPUT_KEY));
        self.follow(held, call, cx).await
    }

    fn digest(&self, call: &ToolCall) -> Digest {
        request_digest("tools/call", &self.params(call))
    }

    fn failure(&self, error: RequestError) -> ToolError {
        failure(&self.upstream.definition.name, error)
    }
}

/// Reports the progress of a call that Helve itself makes.
struct ProgressChannel(CallContext);

impl BackChannel for ProgressChannel {
    fn notify(&self, method: &str, params: Value) {
        if method != "notifications/progress" {
            return;
        }
        let number = |field: &str| params.get(field).and_then(Value::as_f64);
        let of_total = number("progress").zip(number("total")).filter(|(_, total)| *total > 0.0);
        let fraction = of_total.map(|(done, total)| (done / total).clamp(0.0, 1.0));
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        self.0.progress(fraction, printable::shorten(message, 500));
    }

    fn ask(&self, _: &str, _: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        elicitation::not_offered()
    }
}

/// Converts a request error to the error of a call.
fn failure(server: &str, error: RequestError) -> ToolError {
    let fail = |kind, words: &dyn std::fmt::Display| ToolError::new(kind, format!("the server `{server}`: {words}"));
    match error {
        RequestError::Rpc(rpc) => {
            let kind = if rpc.code == CODES.params { ErrorKind::InvalidParameters } else { ErrorKind::Failed };
            fail(kind, &printable::escape(&printable::shorten(&rpc.message, 2000))).with(PROTOCOL, json!({"error": rpc}))
        }
        RequestError::Cancelled => ToolError::cancelled(),
        RequestError::NotApproved => {
            let message = format!("the server `{server}` changed this tool, and the new definition is not approved");
            ToolError::denied(Denial::Unpinned, message)
        }
        RequestError::ScriptChanged(_) => ToolError::denied(Denial::Policy, format!("the server `{server}`: {error}")),
        RequestError::Unreachable(_)
        | RequestError::SessionExpired
        | RequestError::NotStarted(_)
        | RequestError::Status { status: 502..=504, .. } => fail(ErrorKind::Unreachable, &error),
        // The tool's rules decide whether the call may be repeated.
        RequestError::Disconnected(_) => fail(ErrorKind::Interrupted, &error).transient(true),
        RequestError::TimedOut(_) => fail(ErrorKind::Timeout, &error),
        RequestError::TooLarge(_) => fail(ErrorKind::InvalidOutput, &error),
        RequestError::Status { status: 429, .. } => fail(ErrorKind::RateLimited, &error),
        RequestError::Protocol(_) | RequestError::Status { .. } | RequestError::LoginRequired(_) => fail(ErrorKind::Failed, &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It must not look like a server that is only slow to reconnect.
    #[test]
    fn a_program_that_changed_is_a_refusal() {
        let error = failure("s", RequestError::ScriptChanged("the file `x` was changed".to_owned()));
        assert_eq!((error.kind(), &error.details()["reason"]), (ErrorKind::PermissionDenied, &json!("policy")));
        assert!(!error.is_retryable() && error.message().contains("the file `x` was changed"), "{error}");
    }
}
