//! Streams that own their agent and return the agent at the end.

use helve_core::RunId;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::driver::Driver;
use crate::stream::{Outbox, OwnedRunStream, RunStream};
use crate::user_input::UserInput;

impl Agent {
    /// Starts a run, and returns a stream of its events. The stream owns the agent, so a web handler can return the stream and a task can
    /// own it. If the run cannot start, the first item is the error.
    ///
    /// ```
    /// # use helve_agent::{Agent, AgentError, ScriptedModel};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), AgentError> {
    /// let mut stream = Agent::new(ScriptedModel::new().says("Hello!")).into_stream("Hi");
    /// while let Some(text) = stream.next_text().await {
    ///     print!("{}", text?);
    /// }
    /// let agent = stream.into_agent().expect("the stream is over");
    /// assert_eq!(agent.conversation().messages.len(), 2);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn into_stream(mut self, input: impl Into<UserInput>) -> OwnedRunStream {
        let (outbox, cancel, input) = (Outbox::new(self.executor().redactor()), CancellationToken::new(), input.into());
        let (events, stop) = (outbox.clone(), cancel.clone());
        let run = async move {
            let answer = match self.begin(input) {
                Ok(run) => Driver::new(&mut self.0, run, Some(events), stop).start().await,
                Err(error) => Err(error),
            };
            (self, answer)
        };
        RunStream::new(Box::pin(run), outbox, cancel)
    }

    /// Resumes a stored run, and returns a stream of its events. The stream owns the agent. If the agent cannot claim the run, the first
    /// item is the error.
    #[must_use]
    pub fn resume_run_into_stream(mut self, run: RunId) -> OwnedRunStream {
        let (outbox, cancel) = (Outbox::new(self.executor().redactor()), CancellationToken::new());
        let (events, stop) = (outbox.clone(), cancel.clone());
        let run = async move {
            let answer = match self.claim(run, &stop).await {
                Ok((run, claimed)) => Driver::new(&mut self.0, run, Some(events), stop).recover(claimed).await,
                Err(error) => Err(error),
            };
            (self, answer)
        };
        RunStream::new(Box::pin(run), outbox, cancel)
    }
}
