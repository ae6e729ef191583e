//! The model's side of a run: the request of a turn, and the reading of its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use helve_core::{
    BoxFuture, Deltas, DynModel, EndReason, EventData, GenerateOptions, Message, Mode, ModelDelta, ModelError, ModelRequest, ModelStream,
};
use helve_dialect::{Call, CallDelta, Delta, Dialect, Event, EventKind, Reader, answer_text};

use super::Driver;
use crate::context::paragraph;
use crate::error::AgentError;
use crate::fit;
use crate::quotes::{Quoted, stands_in_result};
use crate::run::{Effect, Input, ToolFacts};
use crate::strategy::{Carrier, Strategy};

/// What the model is doing.
pub(super) enum Work<'m> {
    Idle,
    Opening(BoxFuture<'m, Result<ModelStream, ModelError>>, Box<Reader>),
    Speaking(ModelStream, Box<Reader>),
}

/// What the model did.
pub(super) enum ModelEvent {
    Opened(ModelStream),
    EventKind,
    Over,
    Failed(ModelError),
}

impl Work<'_> {
    /// Waits for the model. What it says is in `deltas`.
    pub(super) async fn next(&mut self, deltas: &mut Deltas) -> ModelEvent {
        match self {
            Self::Idle => std::future::pending().await,
            Self::Opening(opening, _) => match AssertUnwindSafe(opening).catch_unwind().await {
                Ok(Ok(stream)) => ModelEvent::Opened(stream),
                Ok(Err(error)) => ModelEvent::Failed(error),
                Err(_) => ModelEvent::Failed(panicked()),
            },
            Self::Speaking(stream, _) => match AssertUnwindSafe(stream.read(deltas)).catch_unwind().await {
                Ok(Ok(true)) => ModelEvent::EventKind,
                Ok(Ok(false)) => ModelEvent::Over,
                Ok(Err(error)) => ModelEvent::Failed(error),
                Err(_) => ModelEvent::Failed(panicked()),
            },
        }
    }
}

fn panicked() -> ModelError {
    ModelError::Protocol("the model panicked".into())
}

impl Driver<'_> {
    /// The request of this turn, and who reads its answer.
    pub(super) fn request(&mut self, model: &dyn DynModel) -> Result<(ModelRequest, Box<Reader>), AgentError> {
        let toolkit = self.parts.toolkit()?;
        if self.run.turns() > 1 {
            self.tell_changes(&toolkit);
        }
        self.around.toolkit = toolkit;
        self.parts.tool_calls.set_definitions(&self.around.toolkit);
        let (tools, info) = (self.around.toolkit.model_list().tools(), model.info());
        let carrier = Carrier {
            strategy: self.run.strategy(),
            info,
            tools,
            choice: self.run.choice(),
            must_answer: self.run.must_answer(),
            calls_natively: self.run.calls_natively(),
            language: self.parts.options.language,
        };
        let mut system = self.parts.options.system_prompt.clone().unwrap_or_default();
        paragraph(&mut system, carrier.words_on_results());
        self.parts.contexts.render(&mut system);
        paragraph(&mut system, &carrier.instructions());
        let mut options = self.parts.generate.clone();
        if carrier.strategy != Strategy::Native && options.temperature.is_none() {
            // Calls that are written out must be exact.
            options = Arc::new(GenerateOptions::clone(&options).temperature(0.0));
        }
        let mut request = ModelRequest::default();
        (request.options, request.stream) = (options, self.outbox.is_some());
        let known = self.parts.system.as_ref().filter(|known| is_system(known, &system)).cloned();
        if !system.is_empty() {
            let message = known.unwrap_or_else(|| Arc::new(Message::system(system)));
            request.messages.push(message.clone());
            self.parts.system = Some(message);
        }
        let limit = self.parts.options.limits.context_tokens.or(info.context_tokens);
        let said = fit::fit(self.run.messages(), limit, self.run.refused());
        carrier.fill(&said, &mut request);
        // With tools beside it, a schema for the answer would forbid calls.
        if tools.is_empty() && info.constrains_output {
            request.output.clone_from(&self.parts.output);
        }
        let reader = carrier.reader(&self.parts.tables.of(tools));
        self.heard.begin(self.run.messages());
        let (turn, messages, tools, strategy) = (self.run.turns(), request.messages.len(), tools.len(), self.run.strategy().name().into());
        self.emit(EventData::ModelRequested { turn, messages, tools, strategy });
        Ok((request, Box::new(reader)))
    }

    fn tell_changes(&mut self, now: &helve_tools::Toolkit) {
        if now.is_same(&self.around.toolkit) {
            return;
        }
        let missing_in = |one: &helve_tools::Toolkit, other: &helve_tools::Toolkit| -> Vec<Arc<str>> {
            one.list().filter(|entry| other.get(entry.name()).is_none()).map(|entry| entry.name().clone()).collect()
        };
        let (added, removed) = (missing_in(now, &self.around.toolkit), missing_in(&self.around.toolkit, now));
        if !(added.is_empty() && removed.is_empty()) {
            self.emit(EventData::ToolsChanged { added, removed });
        }
    }

    /// Takes what the model did.
    pub(super) fn model_event(&mut self, event: ModelEvent, work: &mut Work<'_>, deltas: &Deltas) {
        match (event, std::mem::replace(work, Work::Idle)) {
            (ModelEvent::Opened(stream), Work::Opening(_, reader)) => *work = Work::Speaking(stream, reader),
            (ModelEvent::EventKind, Work::Speaking(stream, mut reader)) => match self.hear(deltas, &mut reader) {
                None => *work = Work::Speaking(stream, reader),
                Some(end) => self.over(end, reader),
            },
            (ModelEvent::Over, Work::Speaking(_, reader)) => self.over(EndReason::Stop, reader),
            (ModelEvent::Failed(error), Work::Speaking(..)) => self.handle(Input::ModelFailed { error, begun: true }),
            (ModelEvent::Failed(error), _) => self.handle(Input::ModelFailed { error, begun: false }),
            _ => {}
        }
    }

    /// Hears a group of pieces; says whether the answer is over.
    fn hear(&mut self, deltas: &Deltas, reader: &mut Reader) -> Option<EndReason> {
        let mut end = None;
        for delta in deltas.iter() {
            let piece = match delta {
                ModelDelta::Text(text) => {
                    self.heard.keep(text, reader);
                    Delta::Text(text)
                }
                ModelDelta::Reasoning(text) => Delta::Reasoning(text),
                ModelDelta::Call { index, id, name, arguments } => Delta::Call(CallDelta { index, id, name, arguments }),
                ModelDelta::ProviderPart(part) => {
                    let format = self.parts.model.info().wire.clone();
                    self.handle(Input::Kept(&format, part));
                    continue;
                }
                ModelDelta::Usage(usage) => {
                    self.handle(Input::Usage(usage));
                    continue;
                }
                ModelDelta::End(reason) => {
                    end = Some(reason);
                    continue;
                }
                _ => continue,
            };
            reader.push(piece, &mut |event| self.said(event));
        }
        end
    }

    /// The answer is over.
    fn over(&mut self, end: EndReason, reader: Box<Reader>) {
        reader.finish(end == EndReason::Length, &mut |event| self.said(event));
        if self.run.strategy() == Strategy::Structured && !self.run.words().is_empty() {
            let words = self.run.words();
            let text = answer_text(words).unwrap_or_else(|| words.to_owned());
            self.emit(EventData::TextDelta { text });
        }
        self.handle(Input::ModelEnded(end));
    }

    fn said(&mut self, event: Event<'_>) {
        let listening = self.outbox.is_some();
        match event.kind {
            EventKind::Text(text) => {
                self.heard.quoting = false;
                self.handle(Input::Text(text));
                self.show(text);
            }
            // What closes a quotation belongs to it.
            EventKind::Markup(text) if self.heard.quoting => {
                self.handle(Input::Text(text));
                self.show(text);
            }
            EventKind::Reasoning(text) => {
                self.handle(Input::Reasoning(text));
                if listening {
                    self.emit(EventData::ReasoningDelta { text: text.to_owned() });
                }
            }
            EventKind::CallOpened { index, name } if listening => {
                self.emit(EventData::CallDelta { index, tool: Some(name.to_owned()), arguments: String::new() });
            }
            EventKind::ArgsDelta { index, text } if listening => {
                self.emit(EventData::CallDelta { index, tool: None, arguments: text.to_owned() });
            }
            EventKind::Call(call) => {
                let in_text = !event.span.is_empty();
                let quoted = if in_text && self.heard.quotable { self.look_up(&call) } else { Quoted::No };
                self.heard.quoting = quoted != Quoted::No;
                if self.heard.quoting {
                    let text = self.heard.at(event.span);
                    self.handle(Input::Quoted { text: &text, tool: &call.name, certain: quoted == Quoted::Yes });
                    return self.show(&text);
                }
                let tool = self.facts(&call.name);
                self.handle(Input::Call { call, tool, in_text });
                // A call may begin while the model still speaks.
                self.apply_starts();
            }
            // Half a call that stands in a result was not meant as one.
            EventKind::Malformed(malformed) if !event.span.is_empty() && stands_in_result(&malformed.raw, self.run.messages()) => {
                self.handle(Input::Text(&malformed.raw));
                self.show(&malformed.raw);
            }
            EventKind::Malformed(malformed) => self.handle(Input::Malformed(malformed)),
            _ => {}
        }
    }

    /// Shows people a piece of the answer. Held to a schema, the model writes JSON; then they are shown the answer in it, when it
    /// is there.
    fn show(&mut self, text: &str) {
        if self.outbox.is_some() && self.run.strategy() != Strategy::Structured {
            self.emit(EventData::TextDelta { text: text.to_owned() });
        }
    }

    /// Whether a call that was found in text stands in a result.
    fn look_up(&mut self, call: &Call) -> Quoted {
        let table = self.parts.tables.of(self.around.toolkit.model_list().tools());
        let dialect = Dialect::of_model(&self.parts.model.info().name);
        self.parts.quotes.look_up(call, self.run.messages(), dialect, &table)
    }

    fn apply_starts(&mut self) {
        if self.effects.iter().any(|effect| matches!(effect, Effect::StartCall(_))) {
            self.apply();
        }
    }

    fn facts(&self, tool: &str) -> ToolFacts {
        let Some(entry) = self.around.toolkit.get(tool) else { return ToolFacts::default() };
        let rules = entry.spec().rules();
        ToolFacts {
            early: rules.idempotent && !rules.exclusive && self.outbox.is_some(),
            exclusive: rules.exclusive,
            ends_run: rules.ends_run,
            repeatable: rules.idempotent || rules.mode == Mode::Background,
        }
    }
}

fn is_system(message: &Message, text: &str) -> bool {
    matches!(message.body(), helve_core::MessageBody::System { text: known } if **known == *text)
}
