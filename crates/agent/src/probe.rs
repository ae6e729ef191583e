//! Probes which strategies a model supports.

use std::sync::Arc;

use helve_core::{
    Deltas, DynModel, GenerateOptions, Message, ModelDelta, ModelError, ModelRequest, ModelTool, ModelTools, Schema, ToolChoice,
};
use serde_json::{Value, json};

use crate::strategy::Strategy;

/// Maximum number of output tokens of a probe: enough for a call, and quick on a slow machine.
const MAX_TOKENS: u32 = 300;

/// The result of [`probe`]: the ways of calling tools that a model supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeResult {
    /// Whether the model called a function natively.
    pub native: bool,
    /// Whether the response matched the JSON Schema of the request.
    pub structured: bool,
}

impl ProbeResult {
    /// Returns the best strategy that the model supports.
    #[must_use]
    pub fn strategy(self) -> Strategy {
        match (self.native, self.structured) {
            (true, _) => Strategy::Native,
            (false, true) => Strategy::Structured,
            (false, false) => Strategy::Json,
        }
    }
}

/// Probes a model with two requests: to call a function, and to answer according to a JSON Schema.
///
/// # Errors
/// Returns an error if a request fails for another reason than a missing feature.
pub async fn probe(model: &dyn DynModel) -> Result<ProbeResult, ModelError> {
    let native = attempt(model, &call_request()).await?.is_some_and(|response| response.called == "get_weather");
    let structured = model.info().constrains_output
        && attempt(model, &schema_request())
            .await?
            .is_some_and(|response| serde_json::from_str::<Value>(response.text.trim()).is_ok_and(|value| schema().is_valid(&value)));
    Ok(ProbeResult { native, structured })
}

#[derive(Default)]
struct ProbeResponse {
    text: String,
    called: String,
}

/// Sends a request to the model. Returns `None` if the model does not support the feature.
async fn attempt(model: &dyn DynModel, request: &ModelRequest) -> Result<Option<ProbeResponse>, ModelError> {
    let mut stream = match model.ask(request.clone()).await {
        Ok(stream) => stream,
        Err(ModelError::Unsupported { .. } | ModelError::Refused(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let (mut response, mut deltas) = (ProbeResponse::default(), Deltas::default());
    while stream.read(&mut deltas).await? {
        for delta in deltas.iter() {
            match delta {
                ModelDelta::Text(text) => response.text.push_str(text),
                ModelDelta::Call { name: Some(name), .. } => response.called.push_str(name),
                _ => {}
            }
        }
    }
    Ok(Some(response))
}

fn request(prompt: &str) -> ModelRequest {
    let mut request = ModelRequest::default();
    request.messages = vec![Arc::new(Message::user(prompt))];
    request.options = Arc::new(GenerateOptions::default().temperature(0.0).max_tokens(MAX_TOKENS));
    request.stream = true;
    request
}

fn call_request() -> ModelRequest {
    let mut request = request("What is the weather in Paris? Call the function.");
    let parameters = Schema::new(json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}));
    let tool = |parameters| ModelTool { name: "get_weather".into(), description: "Tells the weather in a city.".into(), parameters };
    request.tools = Arc::new(ModelTools::new(parameters.ok().map(tool).into_iter().collect()));
    request.tool_choice = ToolChoice::Auto;
    request
}

fn schema_request() -> ModelRequest {
    let mut request = request("Which city is the capital of France? Answer as JSON: {\"city\": \"…\"}");
    request.output = Some(schema());
    request
}

fn schema() -> Schema {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false});
    Schema::new(city).unwrap_or_else(|_| Schema::any_object())
}
