//! What a provider's wire is: pure functions from a request to bytes, and from bytes to the pieces of an answer.

use helve_core::{Deltas, ModelError, ModelRequest};
use helve_fetch::HeaderMap;
use secrecy::SecretString;

/// How one kind of provider is spoken to. Nothing here does input or output.
pub trait Wire: Send + Sync + 'static {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Where requests go, after the provider's base address.
    fn path(&self, model: &str, stream: bool) -> String;

    /// The headers that carry the key, and what else the provider wants.
    fn headers(&self, key: Option<&SecretString>, into: &mut HeaderMap);

    /// The body of a request.
    fn to_wire(&self, model: &str, request: &ModelRequest) -> Vec<u8>;

    /// Reads an answer that came whole.
    ///
    /// # Errors
    /// Where it is none, or says that something went wrong.
    fn from_wire(&self, body: &[u8], into: &mut Deltas) -> Result<(), ModelError>;

    /// Reads an answer that comes in events.
    fn events(&self) -> Box<dyn EventReader>;
}

/// Reads one answer that comes in server-sent events.
pub trait EventReader: Send {
    /// Takes one event.
    ///
    /// # Errors
    /// Where it makes no sense, or says that something went wrong.
    fn event(&mut self, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError>;

    /// Nothing more comes: says why the answer ended.
    ///
    /// # Errors
    /// Where it was cut off.
    fn finish(&mut self, into: &mut Deltas) -> Result<(), ModelError>;
}

/// An answer that ended before it was over.
pub(crate) fn broken_off() -> ModelError {
    ModelError::Network("the connection ended before the answer was complete".into())
}

/// Something that is not what the provider promises, with its beginning.
pub(crate) fn nonsense(what: &str, error: &dyn std::fmt::Display, data: &[u8]) -> ModelError {
    let shown =
        helve_core::printable::shorten(&helve_core::printable::escape_line(&String::from_utf8_lossy(&data[..data.len().min(400)])), 160);
    ModelError::Protocol(format!("{what} cannot be read ({error}): {shown}"))
}

/// Appends a text as a JSON string.
pub(crate) fn string(into: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(into, text);
}
