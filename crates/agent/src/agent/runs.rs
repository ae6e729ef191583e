//! How an agent runs: to its end, as a stream, for a typed answer, or on after people have answered.

use std::sync::Arc;

use helve_core::store::DecisionRecord;
use helve_core::{Grant, Message, MessageBody, RunId};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::Agent;
use crate::driver::Driver;
use crate::error::{AgentError, Paused};
use crate::run::{Answer, Run, RunSettings};
use crate::strategy::Strategy;
use crate::stream::{Outbox, RunStream};
use crate::user_input::UserInput;

impl Agent {
    /// Answers one request.
    ///
    /// # Errors
    /// Why there is no answer. What was said so far stays in the conversation.
    pub async fn run(&mut self, input: impl Into<UserInput>) -> Result<Answer, AgentError> {
        let run = self.begin(input.into())?;
        Driver::new(&mut self.0, run, None, CancellationToken::new()).begin().await
    }

    /// Answers one request, and tells what happens as it happens.
    ///
    /// # Errors
    /// Where the run cannot begin.
    #[expect(clippy::unused_async, reason = "programs await it; the run begins when its stream is polled")]
    pub async fn run_stream(&mut self, input: impl Into<UserInput>) -> Result<RunStream<'_>, AgentError> {
        let run = self.begin(input.into())?;
        let (outbox, cancel) = (Outbox::new(self.0.executor.redactor()), CancellationToken::new());
        let driver = Driver::new(&mut self.0, run, Some(outbox.clone()), cancel.clone());
        Ok(RunStream::borrowed(driver.begin(), outbox, cancel))
    }

    /// Answers one request with a value of a type. The model is told its schema, and once what is wrong with its answer.
    ///
    /// # Errors
    /// Why there is no such answer.
    pub async fn run_as<T: DeserializeOwned + JsonSchema>(&mut self, input: impl Into<UserInput>) -> Result<T, AgentError> {
        self.0.output = Some(helve_core::Schema::of::<T>());
        let answer = crate::typed::run_as(self, input.into()).await;
        self.0.output = None;
        answer
    }

    /// Goes on with a run that waited for people.
    ///
    /// # Errors
    /// Why there is no answer; [`AgentError::Waiting`] again where requests are left.
    pub async fn resume(&mut self, paused: Paused, answers: Vec<Grant>) -> Result<Answer, AgentError> {
        if self.record_answers(&paused, &answers).await? {
            return self.resume_run(paused.run.id()).await;
        }
        self.check_conversation(&paused)?;
        Driver::new(&mut self.0, paused.run, None, CancellationToken::new()).resume(paused.requests, answers).await
    }

    /// Goes on with a run that waited for people, and tells what happens as it happens.
    ///
    /// # Errors
    /// If the run belongs to another conversation.
    pub async fn resume_stream(&mut self, paused: Paused, answers: Vec<Grant>) -> Result<RunStream<'_>, AgentError> {
        if self.record_answers(&paused, &answers).await? {
            return self.resume_run_stream(paused.run.id()).await;
        }
        self.check_conversation(&paused)?;
        let (outbox, cancel) = (Outbox::new(self.0.executor.redactor()), CancellationToken::new());
        let driver = Driver::new(&mut self.0, paused.run, Some(outbox.clone()), cancel.clone());
        Ok(RunStream::borrowed(driver.resume(paused.requests, answers), outbox, cancel))
    }

    /// Records answers to a run that is stored: exactly one answer to a request counts, and another process may have been first. Says
    /// whether the run is stored.
    async fn record_answers(&self, paused: &Paused, answers: &[Grant]) -> Result<bool, AgentError> {
        let Some(store) = self.store() else { return Ok(false) };
        if store.run(paused.run.id()).await?.is_none() {
            return Ok(false);
        }
        for request in &paused.requests {
            let grant = answers.iter().find(|grant| grant.approval_id == request.id && grant.digest == request.digest);
            if let Some(reply) = grant.and_then(|grant| DecisionRecord::of_grant(grant, request)) {
                store.decide(request.id, reply).await?;
            }
        }
        Ok(true)
    }

    fn check_conversation(&self, paused: &Paused) -> Result<(), AgentError> {
        let conversation = &self.0.conversation;
        if paused.run.conversation() == conversation.id && paused.run.messages().starts_with(&conversation.messages) {
            return Ok(());
        }
        Err(AgentError::OtherConversation)
    }

    pub(crate) fn begin(&mut self, input: UserInput) -> Result<Run, AgentError> {
        let (options, info) = (&self.0.options, self.0.model.info());
        let strategy = Strategy::first(options.output_strategy, info, self.0.learned)?;
        let settings = RunSettings {
            agent: options.name.clone(),
            model: info.name.clone(),
            max_iterations: options.max_iterations,
            limits: options.limits.clone(),
            tool_choice: options.tool_choice.clone(),
            output_strategy: options.output_strategy,
            strategy,
            constrains_output: info.constrains_output,
            language: options.language,
        };
        let mut messages = self.0.conversation.messages.clone();
        if !input.is_empty() {
            messages.push(Arc::new(Message::new(MessageBody::User { parts: input.into_parts() })));
        }
        Ok(Run::new(RunId::mint(), self.0.conversation.id, messages, settings))
    }
}
