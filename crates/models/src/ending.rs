//! How a response ends: what the provider says about it, and what can be concluded.

use helve_core::{Deltas, EndReason, ModelDelta, ModelError};

use crate::wire::{incomplete, invalid};

/// What is known about the end of a response.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// Why it ended, if the provider said so.
    pub(crate) reason: Option<EndReason>,
    /// Whether the provider said that it is complete.
    pub(crate) over: bool,
    /// Number of calls so far.
    pub(crate) calls: u32,
}

impl Ending {
    /// Counts a call and returns its index.
    pub(crate) fn call(&mut self) -> u32 {
        self.calls += 1;
        self.calls - 1
    }

    /// Adds the reason why the response ended.
    ///
    /// # Errors
    /// Returns an error if the provider has not said that the response is complete.
    pub(crate) fn finish(&self, into: &mut Deltas) -> Result<(), ModelError> {
        let reason = match self.reason {
            None if !self.over => return Err(incomplete()),
            // Some providers say `stop` when they wait for calls, and some say nothing.
            None | Some(EndReason::Stop) if self.calls > 0 => EndReason::Calls,
            reason => reason.unwrap_or(EndReason::Stop),
        };
        into.push(ModelDelta::End(reason));
        Ok(())
    }
}

/// Whether an event has no content. Some proxies end every stream with `[DONE]`, as Chat Completions does.
pub(crate) fn is_empty(data: &[u8]) -> bool {
    matches!(data.trim_ascii(), b"" | b"[DONE]")
}

/// Why an event cannot be parsed. One that ends too early is where the response was cut off.
pub(crate) fn invalid_event(error: &serde_json::Error, data: &[u8]) -> ModelError {
    if error.is_eof() { incomplete() } else { invalid("an event of the response", error, data) }
}
