//! Handles `tools/call`: finds the tool, and starts the client's call or continues a call that waited for input.

use std::sync::Arc;

use helve_core::{CallContext, Caller, CancellationToken, ErrorKind, ToolCall, ToolError, printable};
use helve_mcp::server::ClientRequest;
use helve_mcp::{Passage, content};
use helve_mcp_wire::{CODES, InputResponses, RpcError};
use helve_tools::{Entry, Toolkit};
use serde_json::{Value, json};

use super::client_call::{ClientCall, NextMove};
use super::present::{ProgressReporter, internal, served_name};
use super::waiting_calls::{WaitingCall, call_digest};
use super::{AGENT, Service, elicitation, tasks};

impl Service {
    pub(super) async fn call(&self, mut request: ClientRequest) -> Result<Value, RpcError> {
        let Some(name) = request.params.get("name").and_then(Value::as_str) else {
            return Err(RpcError::new(CODES.params, "`name` is missing"));
        };
        let arguments = match request.params.get("arguments") {
            None | Some(Value::Null) => json!({}),
            Some(arguments @ Value::Object(_)) => arguments.clone(),
            Some(_) => return Err(RpcError::new(CODES.params, "`arguments` is not an object")),
        };
        let Some((toolkit, entry)) = self.find(name).await? else {
            let message = format!("unknown tool: {}", printable::shorten(name, 200));
            // Most servers respond with a result, and clients of a gateway expect that.
            return if self.serving.gateway {
                Ok(content::write(Err(ToolError::new(ErrorKind::UnknownTool, message))))
            } else {
                Err(RpcError::new(CODES.params, message))
            };
        };
        let Some(service) = self.own.upgrade() else { return Err(internal("the server is stopping")) };
        let input = request.params.as_object_mut().map(InputResponses::take).unwrap_or_default();
        let waiting = service.continued(&entry, &arguments, &input)?;
        let cancel = CancellationToken::new();
        let progress = ProgressReporter::of(&request.from);
        let cx = self.context(&request, &input, &cancel, progress.as_ref());
        let call = ToolCall { id: tasks::call_id(), ..ToolCall::new(entry.name().clone(), arguments) };
        let mut client_call = ClientCall { service, toolkit, entry, request, input, cancel, progress, cx, held: None, task: None };
        let next = match waiting {
            Some(waiting) => client_call.resume(waiting),
            None => NextMove::Make(call),
        };
        client_call.run(next).await
    }

    /// Finds a tool by the name that clients use. Waits for servers that are still connecting, up to a timeout.
    async fn find(&self, name: &str) -> Result<Option<(Toolkit, Arc<Entry>)>, RpcError> {
        let find = || -> Result<_, RpcError> {
            let toolkit = self.toolkit().map_err(internal)?;
            let entry = toolkit.get(name).filter(|entry| **served_name(entry) == *name).cloned();
            Ok(entry.map(|entry| (toolkit, entry)))
        };
        if let Some(found) = find()? {
            return Ok(Some(found));
        }
        self.settled().await;
        find()
    }

    /// Returns the call that a request continues, or `None` if the call is new.
    fn continued(&self, entry: &Entry, arguments: &Value, input: &InputResponses) -> Result<Option<WaitingCall>, RpcError> {
        let Some(state) = input.state_text() else { return Ok(None) };
        match self.waiting.take(state, call_digest(entry, arguments)) {
            None if !self.serving.gateway || self.waiting.is_own(state) => Err(RpcError::new(
                CODES.params,
                "the request that `requestState` continues has ended; send the request again without `requestState`",
            )),
            // The state may belong to a server behind Helve.
            found => Ok(found),
        }
    }

    pub(super) fn context(
        &self,
        request: &ClientRequest,
        input: &InputResponses,
        cancel: &CancellationToken,
        progress: Option<&Arc<ProgressReporter>>,
    ) -> CallContext {
        // An MCP client runs a model, so the rules for agents apply. The name it gives itself proves nothing.
        let mut cx = CallContext::new(Caller::default().agent(AGENT)).with_cancel(cancel.clone());
        if self.serving.gateway {
            cx = cx.with_extension(Passage::new(request.from.clone(), &request.params, input.clone()));
        }
        if let Some(progress) = progress {
            cx = cx.with_observer(progress.clone());
        }
        if elicitation::is_supported(&request.from.capabilities) { cx } else { cx.silent() }
    }
}
