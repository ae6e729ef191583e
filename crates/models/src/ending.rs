//! Determines why a response ended, from what the provider reports and from the calls in the response.

use helve_core::{Deltas, EndReason, ModelDelta, ModelError};

use crate::wire::{incomplete, invalid};

/// What is known so far about the end of a response.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// The reason why the response ended, if the provider reported one.
    pub(crate) reason: Option<EndReason>,
    /// Whether the provider has marked the response as complete.
    pub(crate) over: bool,
    /// Number of calls in the response so far.
    pub(crate) calls: u32,
}

impl Ending {
    /// Counts a call and returns its index, starting at 0.
    pub(crate) fn call(&mut self) -> u32 {
        self.calls += 1;
        self.calls - 1
    }

    /// Appends the delta with the reason why the response ended.
    ///
    /// # Errors
    /// Returns an error if the provider has neither reported a reason nor marked the response as complete.
    pub(crate) fn finish(&self, into: &mut Deltas) -> Result<(), ModelError> {
        let reason = match self.reason {
            None if !self.over => return Err(incomplete()),
            // Some providers report `stop`, or no reason, for a response with calls.
            None | Some(EndReason::Stop) if self.calls > 0 => EndReason::Calls,
            reason => reason.unwrap_or(EndReason::Stop),
        };
        into.push(ModelDelta::End(reason));
        Ok(())
    }
}

/// Returns whether an event has no content. Some proxies end every stream with `[DONE]`, as Chat Completions does.
pub(crate) fn is_empty(data: &[u8]) -> bool {
    matches!(data.trim_ascii(), b"" | b"[DONE]")
}

/// Returns the error for an event that cannot be parsed. An event that ends too early means that the response was cut off.
pub(crate) fn invalid_event(error: &serde_json::Error, data: &[u8]) -> ModelError {
    if error.is_eof() { incomplete() } else { invalid("an event in the response", error, data) }
}
