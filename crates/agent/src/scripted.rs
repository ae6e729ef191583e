//! A model that follows a script, for tests and examples.

use std::collections::VecDeque;
use std::sync::Arc;

use helve_core::{Deltas, EndReason, LanguageModel, ModelDelta, ModelError, ModelInfo, ModelRequest, ModelStream, Usage};
use parking_lot::Mutex;
use serde_json::Value;

/// A model with scripted responses, one for each request. The model records the requests.
#[derive(Clone)]
pub struct ScriptedModel {
    info: ModelInfo,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    responses: VecDeque<ScriptedResponse>,
    requests: Vec<ModelRequest>,
    calls: usize,
}

impl std::fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.lock();
        let mut fields = f.debug_struct("ScriptedModel");
        fields.field("asked", &state.requests.len()).field("answers_left", &state.responses.len()).finish_non_exhaustive()
    }
}

/// A function that creates one response of the script from the request.
type ScriptedResponse = Box<dyn FnOnce(&ModelRequest) -> Result<ModelStream, ModelError> + Send>;

impl ScriptedModel {
    /// Creates a model without responses. The model supports native calls.
    #[must_use]
    pub fn new() -> Self {
        Self { info: ModelInfo::new("scripted"), state: Arc::default() }
    }

    /// Changes the model's [`ModelInfo`].
    #[must_use]
    pub fn with_info(mut self, change: impl FnOnce(&mut ModelInfo)) -> Self {
        change(&mut self.info);
        self
    }

    /// Adds a response with a text, streamed word by word.
    #[must_use]
    pub fn says(self, text: &str) -> Self {
        let mut deltas = Deltas::default();
        for piece in text.split_inclusive(' ') {
            deltas.push(ModelDelta::Text(piece));
        }
        self.ends(deltas, EndReason::Stop)
    }

    /// Adds a response with native calls, as pairs of tool name and arguments.
    #[must_use]
    pub fn calls<'a>(self, calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut deltas = Deltas::default();
        for (index, (name, arguments)) in calls.into_iter().enumerate() {
            let id = {
                let mut state = self.state.lock();
                state.calls += 1;
                format!("call_{}", state.calls)
            };
            let index = u32::try_from(index).ok();
            deltas.push(ModelDelta::Call { index, id: Some(&id), name: Some(name), arguments: &arguments.to_string() });
        }
        self.ends(deltas, EndReason::Calls)
    }

    /// Adds a response that consists of `deltas`.
    #[must_use]
    pub fn gives(self, deltas: Deltas) -> Self {
        self.then(|_| Ok(deltas.into()))
    }

    /// Adds a response that depends on the request: a text, or [`Deltas`].
    ///
    /// ```
    /// # use helve_agent::{Agent, AgentError, ScriptedModel};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), AgentError> {
    /// let model = ScriptedModel::new().answers(|request| format!("You said {:?}.", request.last_user_text().unwrap_or_default()));
    /// assert_eq!(Agent::new(model.clone()).run("hi").await?.text, "You said \"hi\".");
    /// assert_eq!(model.answers_left(), 0);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn answers<A: Into<ModelStream>>(self, answer: impl FnOnce(&ModelRequest) -> A + Send + 'static) -> Self {
        self.then(|request| Ok(answer(request).into()))
    }

    /// Adds a request that fails with `error`.
    #[must_use]
    pub fn fails(self, error: ModelError) -> Self {
        self.then(|_| Err(error))
    }

    /// Returns the requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state.lock().requests.clone()
    }

    /// Returns the number of unused responses. A test should check at its end that none are left.
    #[must_use]
    pub fn answers_left(&self) -> usize {
        self.state.lock().responses.len()
    }

    fn then(self, answer: impl FnOnce(&ModelRequest) -> Result<ModelStream, ModelError> + Send + 'static) -> Self {
        self.state.lock().responses.push_back(Box::new(answer));
        self
    }

    fn ends(self, mut deltas: Deltas, end: EndReason) -> Self {
        deltas.push(ModelDelta::Usage(Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() }));
        deltas.push(ModelDelta::End(end));
        self.gives(deltas)
    }
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new()
    }
}

impl LanguageModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let next = self.state.lock().responses.pop_front();
        let exhausted = || Err(ModelError::Refused("the scripted model has no more responses".into()));
        let response = next.map_or_else(exhausted, |respond| respond(&request));
        self.state.lock().requests.push(request);
        response
    }
}
