//! Creates the request of a turn, and reads the response of the model.

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
use crate::quotes::{Quotation, is_in_result};
use crate::run::{Effect, Input, ToolFacts};
use crate::strategy::{CallFormat, Strategy};

/// The state of the request to the model and of its response.
pub(super) enum ModelResponse<'m> {
    Idle,
    Requested(BoxFuture<'m, Result<ModelStream, ModelError>>, Box<Reader>),
    Streaming(ModelStream, Box<Reader>),
}

impl ModelResponse<'_> {
    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// Waits for the next deltas of the response, and writes them into `deltas`. Returns `false` if the response has ended. Never returns
    /// if there is no request.
    pub(super) async fn next(&mut self, deltas: &mut Deltas) -> Result<bool, ModelError> {
        if let Self::Requested(request, _) = self {
            let stream = caught(request).await?;
            if let Self::Requested(_, reader) = std::mem::replace(self, Self::Idle) {
                *self = Self::Streaming(stream, reader);
            }
        }
        match self {
            Self::Streaming(stream, _) => caught(stream.read(deltas)).await,
            _ => std::future::pending().await,
        }
    }
}

/// Turns a panic of the model into an error.
async fn caught<T>(work: impl Future<Output = Result<T, ModelError>>) -> Result<T, ModelError> {
    let panicked = |_| Err(ModelError::Protocol("the model panicked".into()));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(panicked)
}

impl Driver<'_> {
    /// Creates the request of this turn, and the reader of its response.
    pub(super) fn request(&mut self, model: &dyn DynModel) -> Result<(ModelRequest, Box<Reader>), AgentError> {
        let toolkit = self.agent.toolkit()?;
        if self.run.turns() > 1 {
            self.emit_tool_changes(&toolkit);
        }
        self.environment.toolkit = toolkit;
        self.agent.tool_calls.set_definitions(&self.environment.toolkit);
        let (tools, info) = (self.environment.toolkit.model_list().tools(), model.info());
        let format = CallFormat {
            strategy: self.run.strategy(),
            info,
            tools,
            choice: self.run.tool_choice(),
            must_answer: self.run.must_answer(),
            calls_natively: self.run.calls_natively(),
            language: self.agent.options.language,
        };
        let mut system = self.agent.options.system_prompt.clone().unwrap_or_default();
        paragraph(&mut system, format.results_note());
        self.agent.contexts.render(&mut system);
        paragraph(&mut system, &format.instructions());
        let mut options = self.agent.generate.clone();
        if format.strategy != Strategy::Native && options.temperature.is_none() {
            // A model that writes calls as text must write them exactly.
            options = Arc::new(GenerateOptions::clone(&options).temperature(0.0));
        }
        let mut request = ModelRequest::default();
        (request.options, request.stream) = (options, self.outbox.is_some());
        let known = self.agent.system.as_ref().filter(|known| is_system(known, &system)).cloned();
        if !system.is_empty() {
            let message = known.unwrap_or_else(|| Arc::new(Message::system(system)));
            request.messages.push(message.clone());
            self.agent.system = Some(message);
        }
        let limit = self.agent.options.limits.context_tokens.or(info.context_tokens);
        let messages = fit::fit(self.run.messages(), limit, self.run.too_long());
        format.fill(&messages, &mut request);
        // If there are tools, a schema for the answer would forbid calls.
        if tools.is_empty() && info.constrains_output {
            request.output.clone_from(&self.agent.output);
        }
        let reader = format.reader(&self.agent.tables.of(tools));
        self.response_text.start(self.run.messages());
        let (turn, messages, tools, strategy) = (self.run.turns(), request.messages.len(), tools.len(), self.run.strategy().name().into());
        self.emit(EventData::ModelRequested { turn, messages, tools, strategy });
        Ok((request, Box::new(reader)))
    }

    fn emit_tool_changes(&mut self, now: &helve_tools::Toolkit) {
        if now.is_same(&self.environment.toolkit) {
            return;
        }
        let missing_in = |one: &helve_tools::Toolkit, other: &helve_tools::Toolkit| -> Vec<Arc<str>> {
            one.list().filter(|entry| other.get(entry.name()).is_none()).map(|entry| entry.name().clone()).collect()
        };
        let (added, removed) = (missing_in(now, &self.environment.toolkit), missing_in(&self.environment.toolkit, now));
        if !(added.is_empty() && removed.is_empty()) {
            self.emit(EventData::ToolsChanged { added, removed });
        }
    }

    /// Handles the result of [`ModelResponse::next`].
    pub(super) fn model_progress(&mut self, result: Result<bool, ModelError>, response: &mut ModelResponse<'_>, deltas: &Deltas) {
        match (result, std::mem::replace(response, ModelResponse::Idle)) {
            (Ok(true), ModelResponse::Streaming(stream, mut reader)) => match self.read(deltas, &mut reader) {
                None => *response = ModelResponse::Streaming(stream, reader),
                Some(end) => self.end_response(end, reader),
            },
            (Ok(_), ModelResponse::Streaming(_, reader)) => self.end_response(EndReason::Stop, reader),
            (Ok(_), _) => {}
            (Err(error), state) => self.handle(Input::ModelFailed { error, begun: matches!(state, ModelResponse::Streaming(..)) }),
        }
    }

    /// Passes deltas to the reader. Returns why the response ended, or `None` if it has not ended.
    fn read(&mut self, deltas: &Deltas, reader: &mut Reader) -> Option<EndReason> {
        let mut end = None;
        for delta in deltas.iter() {
            let piece = match delta {
                ModelDelta::Text(text) => {
                    self.response_text.add(text, reader);
                    Delta::Text(text)
                }
                ModelDelta::Reasoning(text) => Delta::Reasoning(text),
                ModelDelta::Call { index, id, name, arguments } => Delta::Call(CallDelta { index, id, name, arguments }),
                ModelDelta::ProviderPart(part) => {
                    let wire = self.agent.model.info().wire.clone();
                    self.handle(Input::ProviderPart(&wire, part));
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
            reader.push(piece, &mut |event| self.dialect_event(event));
        }
        end
    }

    /// Ends a complete response.
    fn end_response(&mut self, end: EndReason, reader: Box<Reader>) {
        reader.finish(end == EndReason::Length, &mut |event| self.dialect_event(event));
        if self.run.strategy() == Strategy::Structured && !self.run.text().is_empty() {
            let json = self.run.text();
            let text = answer_text(json).unwrap_or_else(|| json.to_owned());
            self.emit(EventData::TextDelta { text });
        }
        self.handle(Input::ModelResponded(end));
    }

    /// Handles text and calls that the reader found.
    fn dialect_event(&mut self, event: Event<'_>) {
        let streams = self.outbox.is_some();
        match event.kind {
            EventKind::Text(text) => {
                self.response_text.quoting = false;
                self.handle(Input::Text(text));
                self.show(text);
            }
            // Markup after a quoted call, such as its closing tag, belongs to the quotation.
            EventKind::Markup(text) if self.response_text.quoting => {
                self.handle(Input::Text(text));
                self.show(text);
            }
            EventKind::Reasoning(text) => {
                self.handle(Input::Reasoning(text));
                if streams {
                    self.emit(EventData::ReasoningDelta { text: text.to_owned() });
                }
            }
            EventKind::CallOpened { index, name } if streams => {
                self.emit(EventData::CallDelta { index, tool: Some(name.to_owned()), arguments: String::new() });
            }
            EventKind::ArgsDelta { index, text } if streams => {
                self.emit(EventData::CallDelta { index, tool: None, arguments: text.to_owned() });
            }
            EventKind::Call(call) => {
                let in_text = !event.span.is_empty();
                let quotation = if in_text && self.response_text.quotable { self.look_up(&call) } else { Quotation::No };
                self.response_text.quoting = quotation != Quotation::No;
                if self.response_text.quoting {
                    let text = self.response_text.at(event.span);
                    self.handle(Input::QuotedCall { text: &text, tool: &call.name, certain: quotation == Quotation::Yes });
                    return self.show(&text);
                }
                let tool = self.facts(&call.name);
                self.handle(Input::Call { call, tool, in_text });
                // An early call starts before the response is complete.
                self.apply_starts();
            }
            // An incomplete call that a tool result contains is a quotation.
            EventKind::Malformed(malformed) if !event.span.is_empty() && is_in_result(&malformed.raw, self.run.messages()) => {
                self.handle(Input::Text(&malformed.raw));
                self.show(&malformed.raw);
            }
            EventKind::Malformed(malformed) => self.handle(Input::MalformedCall(malformed)),
            _ => {}
        }
    }

    /// Emits a piece of text. Does nothing if the strategy is structured: then the text is JSON, and [`Self::end_response`] emits the
    /// answer in it.
    fn show(&mut self, text: &str) {
        if self.outbox.is_some() && self.run.strategy() != Strategy::Structured {
            self.emit(EventData::TextDelta { text: text.to_owned() });
        }
    }

    /// Returns whether a call in the message text is quoted from a tool result.
    fn look_up(&mut self, call: &Call) -> Quotation {
        let table = self.agent.tables.of(self.environment.toolkit.model_list().tools());
        let dialect = Dialect::of_model(&self.agent.model.info().name);
        self.agent.quotes.look_up(call, self.run.messages(), dialect, &table)
    }

    fn apply_starts(&mut self) {
        if self.effects.iter().any(|effect| matches!(effect, Effect::StartCall(_))) {
            self.apply();
        }
    }

    fn facts(&self, tool: &str) -> ToolFacts {
        let Some(entry) = self.environment.toolkit.get(tool) else { return ToolFacts::default() };
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
