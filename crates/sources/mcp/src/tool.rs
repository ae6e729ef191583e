//! A tool of a server: a call becomes a request, and what comes back an output, or a question to a person.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::{
    CallContext, Denial, Digest, DynTool, ErrorKind, InputNeeded, InputResponse, Output, ToolCall, ToolError, ToolSpec, printable,
};
use helve_mcp_wire::{CODES, Era, HeaderParam, RpcError};
use serde_json::{Map, Value, json};

use crate::asking;
use crate::caller::{BackChannel, Passage};
use crate::client::{How, Trouble};
use crate::content;
use crate::parked::{Ask, Held, Step};
use crate::upstream::{ONLY, Upstream, bound};

/// Where the words of the protocol are kept beside an error.
const PROTOCOL: &str = "mcp";
/// How often a server may want to be asked again without a question.
const MAX_ROUNDS: u32 = 10;

/// One tool of a server.
pub(crate) struct McpTool {
    pub(crate) spec: Arc<ToolSpec>,
    /// What the server calls it.
    pub(crate) name: Arc<str>,
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
                return Err(self.failure(Trouble::Unpinned));
            }
            match cx.extension::<Passage>() {
                Some(passage) => self.pass(call, cx, passage).await,
                None => self.ask(call, cx).await,
            }
        })
    }

    fn forget(&self, call: &ToolCall, state: &Value) {
        // One that a client would have gone on with is named by what the client was given.
        if let Some(name) = state.get("parked").unwrap_or(state).as_str() {
            // Dropped, the call is cancelled at the server.
            drop(self.upstream.parked().take(name, self.bound(call)));
        }
    }
}

impl McpTool {
    fn params(&self, call: &ToolCall) -> Map<String, Value> {
        Map::from_iter([("name".to_owned(), json!(self.name)), ("arguments".to_owned(), call.arguments.clone())])
    }

    fn agreed(&self) -> (Arc<str>, Digest) {
        (self.name.clone(), self.definition)
    }

    fn param_headers(&self, call: &ToolCall) -> Vec<(String, String)> {
        self.headers.iter().filter_map(|param| Some((param.header.clone(), param.value(&call.arguments)?))).collect()
    }

    /// Passes the call of a client on. What the server asks goes back to the client, in the words of the protocol.
    async fn pass(&self, call: &ToolCall, cx: &CallContext, passage: &Passage) -> Result<Output, ToolError> {
        let mut params = self.params(call);
        params.extend(passage.extra.clone());
        let how =
            How { cancel: cx.cancellation().clone(), headers: self.param_headers(call), agreed: Some(self.agreed()), ..How::default() };
        let passed = self.upstream.pass("tools/call", params, &passage.from, how).await;
        let result = passed.map_err(|trouble| self.failure(trouble))?;
        if is_question(&result) {
            return Err(ToolError::failed("the server needs to know more before it can go on").with(PROTOCOL, json!({"result": result})));
        }
        content::read(result)
    }

    /// Makes a call of Helve's own. What the server asks becomes a question to a person.
    async fn ask(&self, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
        if let Some(given) = cx.given()
            && let Some(name) = given.state.get("parked").and_then(Value::as_str)
        {
            return self.go_on(name, given, call, cx).await;
        }
        let modern = self.upstream.era().await.map_err(|trouble| self.failure(trouble))? == Era::Modern;
        if modern { self.ask_modern(call, cx).await } else { self.follow(self.start(call, cx), call, cx).await }
    }

    async fn ask_modern(&self, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
        let mut params = self.params(call);
        if let Some(given) = cx.given() {
            let keys = given.state.get("keys").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            params.extend(asking::answers(given, keys.map(str::to_owned)));
        }
        let channel: Arc<dyn BackChannel> = Arc::new(Told(cx.clone()));
        let how = How {
            cancel: cx.cancellation().clone(),
            channel: Some(channel),
            progress: true,
            headers: self.param_headers(call),
            agreed: Some(self.agreed()),
            ..How::default()
        };
        for round in 0..MAX_ROUNDS {
            let asked = self.upstream.ask("tools/call", &params, &how).await;
            let result = asked.map_err(|trouble| self.failure(trouble))?;
            if !is_question(&result) {
                return content::read(result);
            }
            if let Some(mut needed) = asking::read(&result)? {
                needed.state["keys"] = needed.requests.iter().map(|request| request.key.clone()).collect();
                return Err(ToolError::needs_input(needed));
            }
            // It has nothing to ask and is not done: it wants to be asked again.
            params.remove("inputResponses");
            if let Some(state) = result.get("requestState") {
                params.insert("requestState".to_owned(), state.clone());
            }
            tokio::time::sleep(Duration::from_millis(50) * (round + 1)).await;
        }
        Err(ToolError::failed(format!("the server wanted to be asked again {MAX_ROUNDS} times")))
    }

    /// Starts a call at a server of the older era.
    fn start(&self, call: &ToolCall, cx: &CallContext) -> Held {
        let how = How { channel: Some(Arc::new(Told(cx.clone()))), progress: true, agreed: Some(self.agreed()), ..How::default() };
        Held::start(&self.upstream, "tools/call", self.params(call), how)
    }

    /// Waits for the end of such a call, or for its first question.
    async fn follow(&self, held: Held, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
        match held.step(cx.cancellation()).await {
            Step::Over(result) => content::read(result.map_err(|trouble| self.failure(trouble))?),
            Step::Asks(held, ask) => self.park(held, ask, call, cx),
        }
    }

    /// Puts the call aside until a person has answered.
    fn park(&self, held: Held, ask: Ask, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
        let mut needed = InputNeeded::new(vec![asking::form(ONLY, &ask.params)?], Value::Null);
        if !cx.can_ask() {
            // Nobody would come back for it; dropped, the call is cancelled at the server.
            return Err(ToolError::failed(needed.summary()));
        }
        let Some(name) = self.upstream.parked().put(held, ask.reply, self.bound(call)) else {
            return Err(ToolError::failed("too many calls of this server wait for a person already"));
        };
        needed.state = json!({"parked": name});
        Err(ToolError::needs_input(needed))
    }

    /// Goes on with a call that was put aside.
    async fn go_on(&self, name: &str, given: &InputResponse, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
        let Some((held, reply)) = self.upstream.parked().take(name, self.bound(call)) else {
            let message = "the server's question came too late to be answered, or its connection has ended since";
            return Err(ToolError::new(ErrorKind::Interrupted, message));
        };
        held.tells(Some(Arc::new(Told(cx.clone()))));
        // A server that is gone meanwhile shows when its answer is waited for.
        let _ = reply.send(asking::answer(given, ONLY));
        self.follow(held, call, cx).await
    }

    fn bound(&self, call: &ToolCall) -> Digest {
        bound("tools/call", &self.params(call))
    }

    fn failure(&self, trouble: Trouble) -> ToolError {
        failure(&self.upstream.definition.name, trouble)
    }
}

fn is_question(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// Who is told of the progress of a call of Helve's own.
struct Told(CallContext);

impl BackChannel for Told {
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
        let refused = RpcError { code: CODES.method, message: "this is not offered here".to_owned(), data: None };
        Box::pin(std::future::ready(Err(refused)))
    }
}

/// What a trouble means for a call.
fn failure(server: &str, trouble: Trouble) -> ToolError {
    let says = |kind, words: &dyn std::fmt::Display| ToolError::new(kind, format!("the server `{server}`: {words}"));
    match trouble {
        Trouble::Refused(error) => {
            let kind = if error.code == CODES.params { ErrorKind::InvalidParameters } else { ErrorKind::Failed };
            says(kind, &printable::escape(&printable::shorten(&error.message, 2000))).with(PROTOCOL, json!({"error": error}))
        }
        Trouble::Cancelled => ToolError::cancelled(),
        Trouble::Unpinned => {
            let message = format!("the server `{server}` has changed this tool, and nobody has agreed to it yet");
            ToolError::denied(Denial::Unpinned, message)
        }
        Trouble::Changed(_) => ToolError::denied(Denial::Policy, format!("the server `{server}`: {trouble}")),
        Trouble::Unreachable(_) | Trouble::Forgotten | Trouble::NotStarted(_) | Trouble::Status { status: 502..=504, .. } => {
            says(ErrorKind::Unreachable, &trouble)
        }
        // Only what may be done twice is tried again, and that is for its rules to say.
        Trouble::Gone(_) => says(ErrorKind::Interrupted, &trouble).transient(true),
        Trouble::Late(_) => says(ErrorKind::Timeout, &trouble),
        Trouble::TooLarge(_) => says(ErrorKind::InvalidOutput, &trouble),
        Trouble::Status { status: 429, .. } => says(ErrorKind::RateLimited, &trouble),
        Trouble::Protocol(_) | Trouble::Status { .. } | Trouble::Unauthorised(_) => says(ErrorKind::Failed, &trouble),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody may take it for a server that is only slow to come back.
    #[test]
    fn a_program_that_changed_is_a_refusal() {
        let error = failure("s", Trouble::Changed("the file `x` was changed".to_owned()));
        assert_eq!((error.kind(), &error.details()["reason"]), (ErrorKind::PermissionDenied, &json!("policy")));
        assert!(!error.is_retryable() && error.message().contains("the file `x` was changed"), "{error}");
    }
}
