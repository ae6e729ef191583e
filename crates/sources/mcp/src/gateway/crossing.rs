//! Forwards a client's request to a server: in the client's era if the server supports it, otherwise translated to the other era.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_mcp_wire::{CODES, Era, InputRequired, InputResponses, META, Meta, RpcError};
use serde_json::{Map, Value, json};

use crate::client::{
    ASKS, CallProgress, ClientIdentity, HeldCall, INPUT_KEY, MAX_REQUESTS, RequestError, RequestOptions, Upstream, request_digest,
};
use crate::downstream::{BackChannel, Downstream};

/// Maximum number of times that a server may request input before it returns a result.
const MAX_ROUNDS: usize = 10;
/// Keys of `_meta` that apply only between client and Helve, so they are not forwarded.
const HOP_KEYS: [&str; 5] = [META.version, META.client, META.capabilities, META.log_level, META.progress];

impl Upstream {
    /// Forwards a client's request to the server.
    pub(crate) async fn pass(
        self: &Arc<Self>,
        method: &str,
        mut params: Map<String, Value>,
        from: &Downstream,
        options: RequestOptions,
    ) -> Result<Value, RequestError> {
        Meta::remove(&mut params, &HOP_KEYS);
        let options = RequestOptions {
            channel: Some(Arc::new(ForwardingChannel(from.clone()))),
            progress: from.progress_token.is_some(),
            on_behalf_of: Some(self.identity_of(from)),
            log_level: from.log_level.clone(),
            ..options
        };
        let Some(session) = from.session.as_ref().filter(|_| from.era == Era::Legacy) else {
            let holds = self.era().await? == Era::Legacy && from.capabilities.get("elicitation").is_some();
            return if holds { self.hold(method, params, options).await } else { self.request(method, &params, &options).await };
        };
        for last in [false, true] {
            let connection = match self.session(session, from).await {
                // The server supports only the modern era, so its input requests become requests to the client.
                Err(RequestError::Protocol(_)) => return self.ask_client(method, params, options, from).await,
                connection => connection?,
            };
            self.check_approved(&options)?;
            let result = connection.request(method, &params, &options).await;
            match &result {
                Ok(_) => self.sessions.record(session, method, &params),
                Err(error) if error.ends_connection() => self.sessions.lose(session, &connection),
                Err(_) => {}
            }
            // If the session has expired, the server did not process the request.
            if last || !matches!(result, Err(RequestError::SessionExpired)) {
                return result;
            }
        }
        Err(RequestError::SessionExpired)
    }

    /// Returns the identity that the server sees for a client.
    pub(crate) fn identity_of(&self, from: &Downstream) -> ClientIdentity {
        let client = from.client.clone().unwrap_or_else(|| self.client_identity.client.clone());
        ClientIdentity { client, capabilities: from.capabilities.clone() }
    }

    /// Sends a modern client's request to a legacy server. If the server requests input, parks the call and returns the input request as
    /// the result; the client then repeats its request with the response.
    async fn hold(self: &Arc<Self>, method: &str, mut params: Map<String, Value>, options: RequestOptions) -> Result<Value, RequestError> {
        let cancel = options.cancel.clone();
        self.check_approved(&options)?;
        let input = InputResponses::take(&mut params);
        Meta::clear(&mut params);
        let digest = request_digest(method, &params);
        let call = if input.state.is_none() {
            HeldCall::start(self, method, params, options)
        } else {
            let Some((call, response)) = self.parked().take(input.state_text().unwrap_or_default(), digest) else {
                return Err(RequestError::Rpc(RpcError::new(CODES.params, "the call that this request continues has ended")));
            };
            call.set_channel(options.channel);
            // A client that omits its response does not want to give one.
            let _ = response.send(input.response(INPUT_KEY).cloned().unwrap_or_else(|| json!({"action": "cancel"})));
            call
        };
        match call.advance(&cancel).await {
            CallProgress::Over(result) => result,
            CallProgress::NeedsInput(call, request) => {
                let too_many = || RequestError::Unreachable("too many calls to it are waiting for input".to_owned());
                let name = self.parked().put(call, request.response, digest).ok_or_else(too_many)?;
                let state = Some(name.into());
                Ok(InputRequired { state, ..InputRequired::default() }.with_elicitation(INPUT_KEY, &request.params).into_value())
            }
        }
    }

    /// Sends a legacy client's request to a modern server. Sends each input request of the server to the client as a request.
    async fn ask_client(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        options: RequestOptions,
        from: &Downstream,
    ) -> Result<Value, RequestError> {
        for _ in 0..MAX_ROUNDS {
            let required = match InputRequired::read(self.request(method, &params, &options).await?) {
                Ok(required) => required,
                Err(result) => return Ok(result),
            };
            let mut responses = Map::new();
            for request in required.requests().take(MAX_REQUESTS) {
                if !ASKS.contains(&request.method) {
                    return Err(RequestError::Protocol("the server sent an input request of an unknown kind".to_owned()));
                }
                let params = if request.params.is_null() { json!({}) } else { request.params.clone() };
                let response = tokio::select! {
                    response = from.channel.ask(request.method, params) => response.map_err(RequestError::Rpc)?,
                    () = options.cancel.cancelled() => return Err(RequestError::Cancelled),
                };
                responses.insert(request.key.to_owned(), response);
            }
            drop(InputResponses::take(&mut params));
            InputResponses { responses: Some(Value::Object(responses)), state: required.state }.put(&mut params);
        }
        Err(RequestError::Protocol(format!("the server requested input {MAX_ROUNDS} times and returned no result")))
    }
}

/// Forwards the messages of a server to the client.
struct ForwardingChannel(Downstream);

impl BackChannel for ForwardingChannel {
    fn notify(&self, method: &str, mut params: Value) {
        if method == "notifications/progress" {
            // The client and Helve use different progress tokens.
            let Some(token) = &self.0.progress_token else { return };
            params[META.progress] = token.clone();
        }
        self.0.channel.notify(method, params);
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        let method = method.to_owned();
        Box::pin(async move { self.0.channel.ask(&method, params).await })
    }
}
