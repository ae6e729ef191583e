//! Methods that start and resume runs: to the end, as a stream, or with a typed answer.

use std::sync::Arc;

use futures_util::FutureExt;
use helve_core::store::DecisionRecord;
use helve_core::{Grant, Message, MessageBody, RunId};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::Agent;
use crate::driver::Driver;
use crate::error::{AgentError, PausedRun};
use crate::run::{Answer, Run, RunSettings};
use crate::strategy::Strategy;
use crate::stream::{Outbox, RunStream};
use crate::user_input::UserInput;

impl Agent {
    /// Starts a run, and drives it to its answer.
    ///
    /// # Errors
    /// Returns an error if the run ends without an answer. The conversation keeps the messages so far.
    pub async fn run(&mut self, input: impl Into<UserInput>) -> Result<Answer, AgentError> {
        let run = self.begin(input.into())?;
        Driver::new(&mut self.0, run, None, CancellationToken::new()).start().await
    }

    /// Starts a run, and returns a stream of its events.
    ///
    /// # Errors
    /// Returns an error if the run cannot start.
    #[expect(clippy::unused_async, reason = "programs await it; the run starts when its stream is polled")]
    pub async fn run_stream(&mut self, input: impl Into<UserInput>) -> Result<RunStream<'_>, AgentError> {
        let run = self.begin(input.into())?;
        Ok(self.stream(run, CancellationToken::new(), Driver::start))
    }

    /// Starts a run, and parses its answer as a `T`. The model gets the JSON Schema of `T`, and one correction if the answer does not match
    /// it.
    ///
    /// # Errors
    /// Returns an error if there is no answer, or the answer does not match the type.
    pub async fn run_as<T: DeserializeOwned + JsonSchema>(&mut self, input: impl Into<UserInput>) -> Result<T, AgentError> {
        self.0.output = Some(helve_core::Schema::of::<T>());
        let answer = crate::typed::run_as(self, input.into()).await;
        self.0.output = None;
        answer
    }

    /// Resumes a paused run with decisions, and drives the run to its answer.
    ///
    /// # Errors
    /// Returns an error if there is no answer, and [`AgentError::Waiting`] if some requests still have no decision.
    pub async fn resume(&mut self, paused: PausedRun, grants: Vec<Grant>) -> Result<Answer, AgentError> {
        if self.record_decisions(&paused, &grants).await? {
            return self.resume_run(paused.run.id()).await;
        }
        self.check_conversation(&paused)?;
        Driver::new(&mut self.0, paused.run, None, CancellationToken::new()).resume(paused.requests, grants).await
    }

    /// Resumes a paused run with decisions, and returns a stream of its events.
    ///
    /// # Errors
    /// Returns an error if the run belongs to another conversation, or the store fails.
    pub async fn resume_stream(&mut self, paused: PausedRun, grants: Vec<Grant>) -> Result<RunStream<'_>, AgentError> {
        if self.record_decisions(&paused, &grants).await? {
            return self.resume_run_stream(paused.run.id()).await;
        }
        self.check_conversation(&paused)?;
        Ok(self.stream(paused.run, CancellationToken::new(), |driver| driver.resume(paused.requests, grants)))
    }

    /// Returns a stream that drives the run and borrows the agent.
    pub(super) fn stream<'a, F>(&'a mut self, run: Run, cancel: CancellationToken, drive: impl FnOnce(Driver<'a>) -> F) -> RunStream<'a>
    where
        F: Future<Output = Result<Answer, AgentError>> + Send + 'a,
    {
        let outbox = Outbox::new(self.0.executor.redactor());
        let driver = Driver::new(&mut self.0, run, Some(outbox.clone()), cancel.clone());
        let answer = drive(driver);
        // Not an async block: that would hold the large future twice.
        RunStream::new(Box::pin(answer.map(|answer| ((), answer))), outbox, cancel)
    }

    /// Records the decisions, if the run is stored. For each request only the first decision counts; another process may have made it.
    /// Returns whether the run is stored.
    async fn record_decisions(&self, paused: &PausedRun, grants: &[Grant]) -> Result<bool, AgentError> {
        let Some(store) = self.store() else { return Ok(false) };
        if store.run(paused.run.id()).await?.is_none() {
            return Ok(false);
        }
        for request in &paused.requests {
            let grant = grants.iter().find(|grant| grant.approval_id == request.id && grant.digest == request.digest);
            if let Some(decision) = grant.and_then(|grant| DecisionRecord::of_grant(grant, request)) {
                store.decide(request.id, decision).await?;
            }
        }
        Ok(true)
    }

    fn check_conversation(&self, paused: &PausedRun) -> Result<(), AgentError> {
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
