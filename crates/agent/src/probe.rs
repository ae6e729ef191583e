//! Finds out what a model can do by asking it to do it.

use std::sync::Arc;

use helve_core::{
    Deltas, DynModel, GenerateOptions, Message, ModelDelta, ModelError, ModelRequest, ModelTool, ModelTools, Schema, ToolChoice,
};
use serde_json::{Value, json};

use crate::strategy::Strategy;

/// Long enough for a call, short enough for a slow machine.
const MAX_TOKENS: u32 = 300;

/// What a model showed that it can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probed {
    /// It called a function natively.
    pub native: bool,
    /// Its answer fitted the schema that its server was given.
    pub structured: bool,
}

impl Probed {
    /// How calls are best carried.
    #[must_use]
    pub fn strategy(self) -> Strategy {
        match (self.native, self.structured) {
            (true, _) => Strategy::Native,
            (false, true) => Strategy::Structured,
            (false, false) => Strategy::Json,
        }
    }
}

/// Asks a model to call a function, and to fill a schema.
///
/// # Errors
/// Where it cannot be asked at all.
pub async fn probe(model: &dyn DynModel) -> Result<Probed, ModelError> {
    let native = attempt(model, &call_request()).await?.is_some_and(|said| said.called == "get_weather");
    let structured = model.info().constrains_output
        && attempt(model, &schema_request())
            .await?
            .is_some_and(|said| serde_json::from_str::<Value>(said.text.trim()).is_ok_and(|value| schema().is_valid(&value)));
    Ok(Probed { native, structured })
}

#[derive(Default)]
struct SaidSoFar {
    text: String,
    called: String,
}

/// What the model says to a request; nothing where it cannot do what the request wants.
async fn attempt(model: &dyn DynModel, request: &ModelRequest) -> Result<Option<SaidSoFar>, ModelError> {
    let mut stream = match model.ask(request.clone()).await {
        Ok(stream) => stream,
        Err(ModelError::Unsupported { .. } | ModelError::Refused(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let (mut said, mut deltas) = (SaidSoFar::default(), Deltas::default());
    while stream.read(&mut deltas).await? {
        for delta in deltas.iter() {
            match delta {
                ModelDelta::Text(text) => said.text.push_str(text),
                ModelDelta::Call { name: Some(name), .. } => said.called.push_str(name),
                _ => {}
            }
        }
    }
    Ok(Some(said))
}

fn asked(prompt: &str) -> ModelRequest {
    let mut request = ModelRequest::default();
    request.messages = vec![Arc::new(Message::user(prompt))];
    request.options = Arc::new(GenerateOptions::default().temperature(0.0).max_tokens(MAX_TOKENS));
    request.stream = true;
    request
}

fn call_request() -> ModelRequest {
    let mut request = asked("What is the weather in Paris? Call the function.");
    let parameters = Schema::new(json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}));
    let tool = |parameters| ModelTool { name: "get_weather".into(), description: "Tells the weather in a city.".into(), parameters };
    request.tools = Arc::new(ModelTools::new(parameters.ok().map(tool).into_iter().collect()));
    request.tool_choice = ToolChoice::Auto;
    request
}

fn schema_request() -> ModelRequest {
    let mut request = asked("Which city is the capital of France? Answer as JSON: {\"city\": \"…\"}");
    request.output = Some(schema());
    request
}

fn schema() -> Schema {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false});
    Schema::new(city).unwrap_or_else(|_| Schema::any_object())
}
