//! A model that says what it is told to: for tests and examples.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use helve_core::{Deltas, EndReason, LanguageModel, ModelDelta, ModelError, ModelInfo, ModelRequest, ModelStream, Usage};
use serde_json::Value;

/// A model that gives prepared answers, one for each time it is asked, and remembers what it was asked.
#[derive(Clone)]
pub struct ScriptedModel {
    info: ModelInfo,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Result<Deltas, ModelError>>,
    asked: Vec<ModelRequest>,
    calls: usize,
}

impl ScriptedModel {
    /// A model without answers, which calls tools natively.
    #[must_use]
    pub fn new() -> Self {
        let mut info = ModelInfo::default();
        info.name = "scripted".into();
        info.provider = "scripted".into();
        info.calls_natively = Some(true);
        Self { info, state: Arc::default() }
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
        self.answers(deltas, EndReason::Stop)
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
        self.answers(deltas, EndReason::Calls)
    }

    /// Then it gives these pieces.
    #[must_use]
    pub fn gives(self, deltas: Deltas) -> Self {
        self.state().answers.push_back(Ok(deltas));
        self
    }

    /// Then it fails.
    #[must_use]
    pub fn fails(self, error: ModelError) -> Self {
        self.state().answers.push_back(Err(error));
        self
    }

    /// What it was asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<ModelRequest> {
        self.state().asked.clone()
    }

    fn answers(self, mut deltas: Deltas, end: EndReason) -> Self {
        deltas.push(ModelDelta::Usage(Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() }));
        deltas.push(ModelDelta::End(end));
        self.gives(deltas)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut state = self.state();
        state.asked.push(request);
        let answer = state.answers.pop_front().unwrap_or_else(|| Err(ModelError::Refused("the script has no more answers".into())));
        answer.map(ModelStream::whole)
    }
}
