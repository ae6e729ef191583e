//! A model that says what it is told to: for tests and examples.

use std::collections::VecDeque;
use std::sync::Arc;

use helve_core::{Deltas, EndReason, LanguageModel, ModelDelta, ModelError, ModelInfo, ModelRequest, ModelStream, Usage};
use parking_lot::Mutex;
use serde_json::Value;

/// A model that gives prepared answers, one for each time it is asked, and remembers what it was asked.
#[derive(Clone)]
pub struct ScriptedModel {
    info: ModelInfo,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Scripted>,
    asked: Vec<ModelRequest>,
    calls: usize,
}

impl std::fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        f.debug_struct("ScriptedModel")
            .field("asked", &state.asked.len())
            .field("answers_left", &state.answers.len())
            .finish_non_exhaustive()
    }
}

/// One answer of the script, made when it is asked for.
type Scripted = Box<dyn FnOnce(&ModelRequest) -> Result<ModelStream, ModelError> + Send>;

impl ScriptedModel {
    /// A model without answers, which calls tools natively.
    #[must_use]
    pub fn new() -> Self {
        Self { info: ModelInfo::new("scripted"), state: Arc::default() }
    }

    /// The same model, of which other things are known.
    #[must_use]
    pub fn with_info(mut self, change: impl FnOnce(&mut ModelInfo)) -> Self {
        change(&mut self.info);
        self
    }

    /// Then it says this.
    #[must_use]
    pub fn says(self, text: &str) -> Self {
        let mut deltas = Deltas::default();
        for piece in text.split_inclusive(' ') {
            deltas.push(ModelDelta::Text(piece));
        }
        self.ends(deltas, EndReason::Stop)
    }

    /// Then it calls these tools, natively.
    #[must_use]
    pub fn calls<'a>(self, calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut deltas = Deltas::default();
        for (index, (name, arguments)) in calls.into_iter().enumerate() {
            let number = {
                let mut state = self.state();
                state.calls += 1;
                state.calls
            };
            let id = format!("call_{number}");
            let index = u32::try_from(index).ok();
            deltas.push(ModelDelta::Call { index, id: Some(&id), name: Some(name), arguments: &arguments.to_string() });
        }
        self.ends(deltas, EndReason::Calls)
    }

    /// Then it gives these pieces.
    #[must_use]
    pub fn gives(self, deltas: Deltas) -> Self {
        self.then(|_| Ok(deltas.into()))
    }

    /// Then it answers what it is asked: with a text, or with [`Deltas`].
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

    /// Then it fails.
    #[must_use]
    pub fn fails(self, error: ModelError) -> Self {
        self.then(|_| Err(error))
    }

    /// What it was asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<ModelRequest> {
        self.state().asked.clone()
    }

    /// How many answers of the script were not asked for. A test that is over expects none.
    #[must_use]
    pub fn answers_left(&self) -> usize {
        self.state().answers.len()
    }

    fn then(self, answer: impl FnOnce(&ModelRequest) -> Result<ModelStream, ModelError> + Send + 'static) -> Self {
        self.state().answers.push_back(Box::new(answer));
        self
    }

    fn ends(self, mut deltas: Deltas, end: EndReason) -> Self {
        deltas.push(ModelDelta::Usage(Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() }));
        deltas.push(ModelDelta::End(end));
        self.gives(deltas)
    }

    fn state(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
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
        let next = self.state().answers.pop_front();
        let answer = next.map_or_else(|| Err(ModelError::Refused("the script has no more answers".into())), |answer| answer(&request));
        self.state().asked.push(request);
        answer
    }
}
