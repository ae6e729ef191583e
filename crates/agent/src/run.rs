//! A run: one agent answering one request, as a state machine without input or output. The driver passes in what happened as an
//! [`Input`]; the run returns what to do as [`Effect`]s.
//!
//! A run can be stored between any two inputs and resumed in another process. Each call that a run announces gets exactly one outcome.
//! A model always accepts the history, because every call in it has a result.

mod calls;
mod effect;
mod end;
mod guard;
mod input;
mod quotes;
mod recover;
mod response;
mod turn;

use std::collections::BTreeSet;
use std::sync::Arc;

use helve_core::{
    ApprovalId, CallId, ConversationId, EndOfRun, EventData, Message, MessageBody, ModelError, OutputStrategy, Part, RunId, ToolChoice,
    Usage,
};
use helve_dialect::Language;
use serde::{Deserialize, Serialize};

pub use self::effect::{Answer, Effect};
use self::guard::RepetitionGuard;
pub use self::input::{Input, ToolFacts};
use self::quotes::has_native_call;
pub(crate) use self::recover::result_in;
use self::turn::{Slot, Turn};
use crate::options::RunLimits;
use crate::strategy::Strategy;

/// Maximum size of a response with its reasoning, in bytes.
const MAX_RESPONSE: usize = 32 << 20;

/// The settings of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunSettings {
    /// The agent's name.
    pub agent: Option<Arc<str>>,
    /// The model's name.
    pub model: Arc<str>,
    /// Maximum number of model requests.
    pub max_iterations: u32,
    /// The limits besides `max_iterations`.
    pub limits: RunLimits,
    /// Whether the model may, must or must not call tools.
    pub tool_choice: ToolChoice,
    /// The strategies that the model may use for calls.
    pub output_strategy: OutputStrategy,
    /// The strategy of the first request.
    pub strategy: Strategy,
    /// Whether the model's server can constrain the response to a JSON Schema.
    pub constrains_output: bool,
    /// The language of Helve's own prompts.
    pub language: Language,
}

/// One agent answering one request: a state machine that turns an [`Input`] into [`Effect`]s.
#[derive(Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the run so far")]
pub struct Run {
    id: RunId,
    conversation: ConversationId,
    settings: RunSettings,
    messages: Vec<Arc<Message>>,
    phase: Phase,
    turn: Turn,
    strategy: Strategy,
    turns: u32,
    calls: u32,
    usage: Usage,
    guard: RepetitionGuard,
    /// Number of consecutive corrections.
    corrections: u32,
    /// Call ids that the model has used, to detect repeated ones.
    model_ids: BTreeSet<Arc<str>>,
    /// Whether the `run_waiting` event was emitted for the current pause.
    #[serde(rename = "waiting_told")]
    waiting_announced: bool,
    /// Whether a request was repeated because its response was incomplete.
    #[serde(rename = "asked_again")]
    repeated_request: bool,
    seq: u64,
    /// How often the model has rejected the conversation as too long.
    #[serde(rename = "refused")]
    too_long: u32,
    /// Whether a call was started in an earlier turn.
    has_called: bool,
    /// Whether the model made a native call in this run or earlier in the conversation. If so, Helve does not search its text for calls.
    #[serde(default)]
    calls_natively: bool,
    /// Whether the run has explained to the model that a quoted call was not run, and the model has not called a tool since.
    #[serde(default, rename = "told_of_quotes")]
    quotes_explained: bool,
    /// Whether a listener or a store gets the events.
    #[serde(skip)]
    watched: bool,
}

/// Formats the run without messages and arguments, which may contain secrets.
impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let calls: Vec<_> = self.turn.slots.iter().map(|slot| (slot.call.id, &slot.call.tool)).collect();
        let mut fields = f.debug_struct("Run");
        fields.field("id", &self.id).field("conversation", &self.conversation).field("phase", &self.phase).field("turns", &self.turns);
        fields.field("messages", &self.messages.len()).field("calls", &calls).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    New,
    #[serde(rename = "Asking")]
    Responding,
    Calling,
    Over,
}

impl Run {
    /// Creates a run that answers the last of `messages`.
    #[must_use]
    pub fn new(id: RunId, conversation: ConversationId, messages: Vec<Arc<Message>>, settings: RunSettings) -> Self {
        let strategy = settings.strategy;
        let calls_natively = has_native_call(&messages, &settings.model);
        Self {
            id,
            conversation,
            settings,
            messages,
            phase: Phase::New,
            turn: Turn::default(),
            strategy,
            turns: 0,
            calls: 0,
            usage: Usage::default(),
            guard: RepetitionGuard::default(),
            corrections: 0,
            model_ids: BTreeSet::new(),
            waiting_announced: false,
            repeated_request: false,
            seq: 0,
            too_long: 0,
            has_called: false,
            calls_natively,
            quotes_explained: false,
            watched: false,
        }
    }

    /// Sets whether a listener or a store gets the events. If not, the run omits events that copy large values.
    #[must_use]
    pub fn watched(mut self, watched: bool) -> Self {
        self.watched = watched;
        self
    }

    /// Returns the id of the run.
    #[must_use]
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Returns the id of the run's conversation.
    #[must_use]
    pub fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Returns the messages of the conversation up to the last complete turn.
    #[must_use]
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns the settings of the run.
    #[must_use]
    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }

    /// Returns the current strategy.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Returns the number of requests to the model so far.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// Returns the tokens and the cost so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the sequence number of the next event. Deltas have the number of the event before them.
    pub fn next_seq(&mut self, event: &EventData) -> u64 {
        if !event.is_piece() {
            self.seq += 1;
        }
        self.seq
    }

    /// Returns the text of the current response so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.turn.text
    }

    /// Returns how often the model has rejected the conversation as too long.
    #[must_use]
    pub fn too_long(&self) -> u32 {
        self.too_long
    }

    /// Returns the tool choice of this turn: `None` if the model must answer, and `Auto` after a required call has started.
    #[must_use]
    pub fn tool_choice(&self) -> ToolChoice {
        match &self.settings.tool_choice {
            _ if self.guard.must_answer => ToolChoice::None,
            ToolChoice::Required | ToolChoice::Specific(_) if self.has_called => ToolChoice::Auto,
            choice => choice.clone(),
        }
    }

    /// Returns whether a call waits for the decision about this approval request.
    #[must_use]
    pub fn is_waiting(&self, approval: ApprovalId) -> bool {
        self.phase != Phase::Over && self.turn.open_requests().contains(&approval)
    }

    /// Returns whether the model must answer now, without tools.
    #[must_use]
    pub fn must_answer(&self) -> bool {
        self.guard.must_answer
    }

    /// Handles an input, and appends its effects to `effects`. Does nothing if the run has ended.
    pub fn handle(&mut self, input: Input<'_>, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Over {
            return;
        }
        match input {
            Input::Start => self.start(effects),
            Input::Text(text) if self.has_room(text, effects) => self.turn.text.push_str(text),
            Input::Reasoning(text) if self.has_room(text, effects) => self.turn.reasoning.push_str(text),
            Input::QuotedCall { text, tool, certain } if self.has_room(text, effects) => self.quoted_call(text, tool, certain, effects),
            Input::Text(_) | Input::Reasoning(_) | Input::QuotedCall { .. } => {}
            Input::ProviderPart(format, part) => self.turn.add_provider_part(format, part),
            Input::Call { call, tool, in_text } => self.add_call(call, tool, in_text, effects),
            Input::MalformedCall(malformed) => self.add_malformed(malformed.kind, malformed.error, malformed.raw),
            Input::Usage(usage) => self.turn.usage = usage,
            Input::ModelResponded(end) => self.model_responded(end, effects),
            Input::ModelFailed { error, begun } => self.model_failed(error, begun, effects),
            Input::CallFinished(outcome) => self.call_finished(outcome, effects),
            Input::ApprovalRequested(request) => self.approval_requested(request, effects),
            Input::Decided { approval, verdict, by } => {
                effects.push(Effect::Emit(EventData::PermissionResult { approval_id: approval, decision: verdict, by }));
                self.waiting_announced = false;
                self.turn.resume(approval);
            }
            Input::BackgroundResult { tool, outcome } => self.background_result(&tool, &outcome),
            Input::Recover => self.recover(effects),
            Input::Failed(error) => self.fail(error, effects),
            Input::Cancel => self.stop(EndOfRun::Cancelled, effects),
            Input::Timeout => self.stop(EndOfRun::TimeBudget, effects),
        }
    }

    /// Returns whether the response has room for more text. If not, aborts the response, because the model may never stop by itself.
    fn has_room(&mut self, more: &str, effects: &mut Vec<Effect>) -> bool {
        let fits = self.turn.text.len() + self.turn.reasoning.len() + more.len() <= MAX_RESPONSE;
        if !fits {
            let error = ModelError::Protocol(format!("the response is larger than {MAX_RESPONSE} bytes"));
            self.model_failed(error, true, effects);
        }
        fits
    }

    fn start(&mut self, effects: &mut Vec<Effect>) {
        let input = self.messages.last().map(|message| user_text(message)).unwrap_or_default();
        let (agent, model) = (self.settings.agent.clone(), self.settings.model.clone());
        effects.push(Effect::Emit(EventData::RunStarted { agent, model, input }));
        effects.push(Effect::Persist);
        self.ask_model(effects);
    }

    /// Sends the next request to the model, unless a limit is reached.
    fn ask_model(&mut self, effects: &mut Vec<Effect>) {
        if let Some(reason) = self.limit() {
            return self.end(reason, effects);
        }
        self.turns += 1;
        self.phase = Phase::Responding;
        self.turn = Turn::default();
        effects.push(Effect::AskModel);
    }

    fn limit(&self) -> Option<EndOfRun> {
        let limits = &self.settings.limits;
        if self.turns >= self.settings.max_iterations {
            return Some(EndOfRun::MaxIterations);
        }
        if limits.max_tokens.is_some_and(|max| self.usage.tokens() >= max) {
            return Some(EndOfRun::TokenBudget);
        }
        let spent = self.usage.cost.unwrap_or_default();
        limits.max_cost.is_some_and(|max| spent >= max).then_some(EndOfRun::CostBudget)
    }

    /// Changes to the next strategy. Returns `false` if all strategies were tried.
    fn fall_back(&mut self, reason: &str, effects: &mut Vec<Effect>) -> bool {
        let Some(next) = self.strategy.next(self.settings.output_strategy, self.settings.constrains_output) else { return false };
        let (from, to) = (self.strategy.name().into(), next.name().into());
        effects.push(Effect::Emit(EventData::StrategyChanged { from, to, reason: reason.to_owned() }));
        self.strategy = next;
        true
    }

    fn slot(&mut self, call: CallId) -> Option<&mut Slot> {
        self.turn.slots.iter_mut().find(|slot| slot.call.id == call)
    }
}

/// Returns the text of a user message, or an empty text for other messages.
fn user_text(message: &Message) -> Arc<str> {
    let MessageBody::User { parts } = message.body() else { return "".into() };
    let texts = parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(&**text) } else { None });
    texts.collect::<Vec<_>>().join("\n").into()
}
