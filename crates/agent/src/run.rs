//! A run: one agent answering one request. It does no input or output: what happens goes in, what to do comes out.
//!
//! It can be written down between any two inputs and go on in another process. A call that it announces gets exactly
//! one outcome, and the history that it leaves is always one that a model can read: every call in it is answered.

mod guard;
mod quotes;
mod recover;
mod settle;
mod turn;

use std::collections::BTreeSet;
use std::sync::Arc;

use helve_core::{
    ApprovalId, ApprovalRequest, CallId, ConversationId, EndOfRun, EndReason, EventData, Message, MessageBody, ModelError, Outcome,
    OutputStrategy, Part, RunId, ToolCall, ToolChoice, Usage,
};
use helve_dialect::{Call, Language, Malformed};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::guard::Guard;
use self::quotes::has_native_call;
pub(crate) use self::recover::result_in;
use self::turn::{Slot, Turn};
use crate::error::AgentError;
use crate::options::RunLimits;
use crate::strategy::Strategy;

/// No answer has more words and thoughts than this, in bytes.
const MAX_ANSWER: usize = 32 << 20;

/// What a run may do, and how.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunSettings {
    /// The agent's name.
    pub agent: Option<Arc<str>>,
    /// The model's name.
    pub model: Arc<str>,
    /// How often the model is asked.
    pub max_iterations: u32,
    /// When it stops besides.
    pub limits: RunLimits,
    /// Whether the model must call a tool.
    pub tool_choice: ToolChoice,
    /// Which strategies are allowed.
    pub output_strategy: OutputStrategy,
    /// The strategy to begin with.
    pub strategy: Strategy,
    /// Whether the server can hold its model to a schema.
    pub constrains_output: bool,
    /// The language of what Helve itself says.
    pub language: Language,
}

/// One agent answering one request.
#[derive(Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "what happened once, each by itself")]
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
    guard: Guard,
    /// How often in a row the model was told that it could not be understood.
    corrections: u32,
    /// Ids that the model used already; it is not always careful.
    model_ids: BTreeSet<Arc<str>>,
    waiting_told: bool,
    /// Whether an answer that broke off was asked for once more.
    asked_again: bool,
    seq: u64,
    /// How often the model said that the conversation does not fit.
    refused: u32,
    /// Whether a call was really made in an earlier turn.
    has_called: bool,
    /// Whether the model made a call by its own function calling, in this run or before: then its text is text.
    #[serde(default)]
    calls_natively: bool,
    /// Whether the model was told that it quoted a call, and made none since.
    #[serde(default)]
    told_of_quotes: bool,
    /// Whether anyone is told what happens.
    #[serde(skip)]
    watched: bool,
}

/// Leaves out what was said, and what tools are called with: it may be secret.
impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let calls: Vec<_> = self.turn.slots.iter().map(|slot| (slot.said.id, &slot.said.tool)).collect();
        let mut shown = f.debug_struct("Run");
        shown.field("id", &self.id).field("conversation", &self.conversation).field("phase", &self.phase).field("turns", &self.turns);
        shown.field("messages", &self.messages.len()).field("calls", &calls).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    New,
    Asking,
    Calling,
    Over,
}

/// Something that happened.
#[derive(Debug)]
pub enum Input<'a> {
    /// It begins.
    Begin,
    /// The model says something.
    Text(&'a str),
    /// The model thinks aloud.
    Reasoning(&'a str),
    /// The model's provider wants this back.
    Kept(&'a str, &'a Value),
    /// The model made a call.
    Call {
        /// The call.
        call: Call,
        /// What the run must know of the tool.
        tool: ToolFacts,
        /// Whether it was found in text.
        in_text: bool,
    },
    /// The model wrote a call that stands in a result: it is text, and not run.
    Quoted {
        /// What the model wrote.
        text: &'a str,
        /// The tool.
        tool: &'a str,
        /// Whether that it stands there is certain; else there is too much to compare it with.
        certain: bool,
    },
    /// The model meant to make a call.
    Malformed(Malformed),
    /// What the answer costs so far.
    Usage(Usage),
    /// The model ended its answer.
    ModelEnded(EndReason),
    /// The model did not answer, or its answer broke off.
    ModelFailed {
        /// Why.
        error: ModelError,
        /// Whether its answer had begun; what failed before was repeated already, where that may help.
        begun: bool,
    },
    /// A call ended.
    CallFinished(Outcome),
    /// A call must be confirmed first.
    CallWaits(Box<ApprovalRequest>),
    /// A person answered a request; the call goes on its way.
    Decided {
        /// The request.
        approval: ApprovalId,
        /// The answer, for the record.
        decision: helve_core::Verdict,
        /// Who answered.
        by: String,
    },
    /// The result of a background call came.
    Result {
        /// The tool's name.
        tool: Arc<str>,
        /// What came of it.
        outcome: Outcome,
    },
    /// It goes on in another process, from where it was recorded last.
    Recover,
    /// It cannot go on.
    Failed(AgentError),
    /// Nobody wants the answer any more.
    Cancel,
    /// Time is up.
    TimeUp,
}

/// What a run must know of a tool that is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub struct ToolFacts {
    /// A call may begin while the model still speaks.
    pub early: bool,
    /// No other call of the turn may run beside it.
    pub exclusive: bool,
    /// A call that ends well ends the run.
    pub ends_run: bool,
    /// A call that broke off may be made again: it is idempotent, or only goes into the queue.
    #[serde(default)]
    pub repeatable: bool,
}

/// Something to do.
#[derive(Debug)]
pub enum Effect {
    /// Ask the model.
    AskModel,
    /// Let a call run: admit it, and attempt it.
    StartCall(ToolCall),
    /// Stop the calls that are under way; their outcomes are known already.
    CancelCalls,
    /// Ask a person.
    AskPerson(Box<ApprovalRequest>),
    /// Tell whoever listens.
    Emit(EventData),
    /// Write the messages down: all calls in them are answered.
    Persist,
    /// Nothing can be done before a person answers.
    Pause,
    /// It is over.
    Done(Result<Answer, AgentError>),
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The answer.
    pub text: String,
    /// Why the run is over.
    pub reason: EndOfRun,
    /// What it cost.
    pub usage: Usage,
    /// How often the model was asked.
    pub turns: u32,
    /// How many calls it made.
    pub calls: u32,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Run {
    /// A run that will answer the last of these messages.
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
            guard: Guard::default(),
            corrections: 0,
            model_ids: BTreeSet::new(),
            waiting_told: false,
            asked_again: false,
            seq: 0,
            refused: 0,
            has_called: false,
            calls_natively,
            told_of_quotes: false,
            watched: false,
        }
    }

    /// The same run, whose larger events are worth making because someone is told of them.
    #[must_use]
    pub fn watched(mut self, watched: bool) -> Self {
        self.watched = watched;
        self
    }

    /// Names it.
    #[must_use]
    pub fn id(&self) -> RunId {
        self.id
    }

    /// The conversation that it belongs to.
    #[must_use]
    pub fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// What was said so far, by turns that are complete.
    #[must_use]
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// What it may do, and how it began.
    #[must_use]
    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }

    /// How calls are carried now.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// How often the model was asked.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// What it cost so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The place of an event in the run.
    pub fn place(&mut self, event: &EventData) -> u64 {
        if !event.is_piece() {
            self.seq += 1;
        }
        self.seq
    }

    /// What the model said in this turn so far.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.turn.text
    }

    /// How often the model said that the conversation does not fit.
    #[must_use]
    pub fn refused(&self) -> u32 {
        self.refused
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether the model must call a tool in this turn.
    #[must_use]
    pub fn choice(&self) -> ToolChoice {
        match &self.settings.tool_choice {
            _ if self.guard.must_answer => ToolChoice::None,
            ToolChoice::Required | ToolChoice::Specific(_) if self.has_called => ToolChoice::Auto,
            choice => choice.clone(),
        }
    }

    /// Whether a call waits for the answer to this request.
    #[must_use]
    pub fn is_waiting(&self, approval: ApprovalId) -> bool {
        self.phase != Phase::Over && self.turn.open_requests().contains(&approval)
    }

    /// Whether this is the last chance to answer, without tools.
    #[must_use]
    pub fn must_answer(&self) -> bool {
        self.guard.must_answer
    }

    /// Takes what happened, and adds what to do now.
    pub fn handle(&mut self, input: Input<'_>, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Over {
            return;
        }
        match input {
            Input::Begin => self.begin(effects),
            Input::Text(text) if self.has_room(text, effects) => self.turn.text.push_str(text),
            Input::Reasoning(text) if self.has_room(text, effects) => self.turn.reasoning.push_str(text),
            Input::Quoted { text, tool, certain } if self.has_room(text, effects) => self.quoted(text, tool, certain, effects),
            Input::Text(_) | Input::Reasoning(_) | Input::Quoted { .. } => {}
            Input::Kept(format, part) => self.turn.keep(format, part),
            Input::Call { call, tool, in_text } => self.called(call, tool, in_text, effects),
            Input::Malformed(malformed) => self.malformed(malformed.kind, malformed.error, malformed.raw),
            Input::Usage(usage) => self.turn.usage = usage,
            Input::ModelEnded(end) => self.answered(end, effects),
            Input::ModelFailed { error, begun } => self.broke_off(error, begun, effects),
            Input::CallFinished(outcome) => self.finished(outcome, effects),
            Input::CallWaits(request) => self.waits(request, effects),
            Input::Decided { approval, decision, by } => {
                effects.push(Effect::Emit(EventData::PermissionResult { approval_id: approval, decision, by }));
                self.waiting_told = false;
                self.turn.resume(approval);
            }
            Input::Result { tool, outcome } => self.heard(&tool, &outcome),
            Input::Recover => self.recover(effects),
            Input::Failed(error) => self.fail(error, effects),
            Input::Cancel => self.stop(EndOfRun::Cancelled, effects),
            Input::TimeUp => self.stop(EndOfRun::TimeBudget, effects),
        }
    }

    /// Whether there is room for more of an answer. Without any, the answer is broken off: its model may never stop by itself.
    fn has_room(&mut self, more: &str, effects: &mut Vec<Effect>) -> bool {
        let fits = self.turn.text.len() + self.turn.reasoning.len() + more.len() <= MAX_ANSWER;
        if !fits {
            let error = ModelError::Protocol(format!("the answer is larger than {MAX_ANSWER} bytes"));
            self.broke_off(error, true, effects);
        }
        fits
    }

    fn begin(&mut self, effects: &mut Vec<Effect>) {
        let input = self.messages.last().map(|message| asked(message)).unwrap_or_default();
        let (agent, model) = (self.settings.agent.clone(), self.settings.model.clone());
        effects.push(Effect::Emit(EventData::RunStarted { agent, model, input }));
        effects.push(Effect::Persist);
        self.ask(effects);
    }

    /// Asks the model, unless a limit is reached.
    fn ask(&mut self, effects: &mut Vec<Effect>) {
        if let Some(reason) = self.limit() {
            return self.end(reason, effects);
        }
        self.turns += 1;
        self.phase = Phase::Asking;
        self.turn = Turn::default();
        effects.push(Effect::AskModel);
    }

    fn limit(&self) -> Option<EndOfRun> {
        let limits = &self.settings.limits;
        if self.turns >= self.settings.max_iterations {
            return Some(EndOfRun::MaxIterations);
        }
        if limits.max_tokens.is_some_and(|most| self.usage.tokens() >= most) {
            return Some(EndOfRun::TokenBudget);
        }
        let spent = self.usage.cost.unwrap_or_default();
        limits.max_cost.is_some_and(|most| spent >= most).then_some(EndOfRun::CostBudget)
    }

    /// Changes how calls are carried; says whether there is another way.
    fn fall_back(&mut self, reason: &str, effects: &mut Vec<Effect>) -> bool {
        let Some(next) = self.strategy.next(self.settings.output_strategy, self.settings.constrains_output) else { return false };
        let (from, to) = (self.strategy.name().into(), next.name().into());
        effects.push(Effect::Emit(EventData::StrategyChanged { from, to, reason: reason.to_owned() }));
        self.strategy = next;
        true
    }

    /// Ends the run with a reason.
    fn end(&mut self, reason: EndOfRun, effects: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        let text = std::mem::take(&mut self.turn.text);
        let text = if text.is_empty() { self.last_words() } else { text };
        effects.push(Effect::Persist);
        effects.push(Effect::Emit(EventData::RunFinished { text: text.as_str().into(), reason, usage: self.usage }));
        let answer = Answer { text, reason, usage: self.usage, turns: self.turns, calls: self.calls };
        effects.push(Effect::Done(match reason {
            EndOfRun::Answered | EndOfRun::Stopped => Ok(answer),
            _ => Err(AgentError::Stopped { reason, text: answer.text }),
        }));
    }

    /// Ends the run with an error.
    fn fail(&mut self, error: AgentError, effects: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        effects.push(Effect::Persist);
        effects.push(Effect::Emit(EventData::RunFailed { error: error.for_event() }));
        effects.push(Effect::Done(Err(error)));
    }

    /// What the model said last in this run.
    fn last_words(&self) -> String {
        let last = self.messages.iter().rev().take_while(|message| !matches!(message.body(), MessageBody::User { .. }));
        let mut words = last.filter_map(|message| match message.body() {
            MessageBody::Assistant { text, .. } if !text.is_empty() => Some(text.to_string()),
            _ => None,
        });
        words.next().unwrap_or_default()
    }

    fn slot(&mut self, call: CallId) -> Option<&mut Slot> {
        self.turn.slots.iter_mut().find(|slot| slot.said.id == call)
    }
}

/// What a message asks, in words.
fn asked(message: &Message) -> Arc<str> {
    let MessageBody::User { parts } = message.body() else { return "".into() };
    let words = parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(&**text) } else { None });
    words.collect::<Vec<_>>().join("\n").into()
}
