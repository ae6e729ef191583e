//! How an answer ends: what the provider said about it, and what can be seen.

use helve_core::{Deltas, EndReason, ModelDelta, ModelError};

use crate::wire::{broken_off, nonsense};

/// What is known of the end of an answer.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// Why it ended, where the provider said so.
    pub(crate) reason: Option<EndReason>,
    /// Whether the provider said that it is over.
    pub(crate) over: bool,
    /// How many calls were begun.
    pub(crate) calls: u32,
}

impl Ending {
    /// Counts a call and gives its place.
    pub(crate) fn call(&mut self) -> u32 {
        self.calls += 1;
        self.calls - 1
    }

    /// Says why the answer ended.
    ///
    /// # Errors
    /// Where the provider has not said that it is over.
    pub(crate) fn tell(&self, into: &mut Deltas) -> Result<(), ModelError> {
        let reason = match self.reason {
            None if !self.over => return Err(broken_off()),
            // Some say `stop` when they wait for calls, and some say nothing.
            None | Some(EndReason::Stop) if self.calls > 0 => EndReason::Calls,
            reason => reason.unwrap_or(EndReason::Stop),
        };
        into.push(ModelDelta::End(reason));
        Ok(())
    }
}

/// Whether an event has no content: some proxies end every stream as OpenAI's chat does.
pub(crate) fn is_empty(data: &[u8]) -> bool {
    matches!(data.trim_ascii(), b"" | b"[DONE]")
}

/// Why an event cannot be read. One that stops in its middle is where the answer was cut off.
pub(crate) fn unreadable(error: &serde_json::Error, data: &[u8]) -> ModelError {
    if error.is_eof() { broken_off() } else { nonsense("a piece of the answer", error, data) }
}
