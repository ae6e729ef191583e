//! Runs in streams that own their agent, and give it back at the end.

use helve_core::RunId;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::driver::Driver;
use crate::stream::{Outbox, OwnedRunStream, RunStream};
use crate::user_input::UserInput;

impl Agent {
    /// Answers one request in a stream that owns the agent: it can be returned from a handler of a web server, or moved into a task.
    /// Why the run cannot begin is the first item.
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
        let work = async move {
            let answer = match self.begin(input) {
                Ok(run) => Driver::new(self.parts(), run, Some(events), stop).begin().await,
                Err(error) => Err(error),
            };
            (self, answer)
        };
        RunStream::new(Box::pin(work), outbox, cancel)
    }

    /// Goes on with a recorded run that nothing drives, in a stream that owns the agent. Why it cannot be taken is the first item.
    #[must_use]
    pub fn resume_run_into_stream(mut self, run: RunId) -> OwnedRunStream {
        let (outbox, cancel) = (Outbox::new(self.executor().redactor()), CancellationToken::new());
        let (events, stop) = (outbox.clone(), cancel.clone());
        let work = async move {
            let answer = match self.take(run, &stop).await {
                Ok((run, taken)) => Driver::new(self.parts(), run, Some(events), stop).go_on(taken).await,
                Err(error) => Err(error),
            };
            (self, answer)
        };
        RunStream::new(Box::pin(work), outbox, cancel)
    }
}
