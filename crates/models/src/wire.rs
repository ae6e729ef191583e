//! The trait [`Wire`] of wire formats: pure functions that serialise a request and parse a response into deltas.

use std::fmt;

use helve_core::{Deltas, ModelError, ModelRequest, printable};
use helve_fetch::{HeaderMap, header};
use secrecy::{ExposeSecret, SecretString};

use crate::list::MAX_PARTS;
use crate::number::mended;

/// The wire format of a provider API. Its methods do no I/O.
pub trait Wire: Send + Sync + 'static {
    /// Returns the name of the wire format.
    fn name(&self) -> &'static str;

    /// Returns the path of requests to `model`, relative to the provider's base URL. It may include a query.
    fn path(&self, model: &str, stream: bool) -> String;

    /// Sets the headers that the provider requires. The default implementation sends the API key as a bearer token.
    fn headers(&self, key: Option<&SecretString>, into: &mut HeaderMap) {
        set_key(header::AUTHORIZATION, "Bearer ", key, into);
    }

    /// Serialises the body of a request.
    fn to_wire(&self, model: &str, request: &ModelRequest) -> Vec<u8>;

    /// Parses a response that is not streamed, and appends its deltas to `into`.
    ///
    /// # Errors
    /// Returns an error if the response is invalid or reports a failure.
    #[expect(clippy::wrong_self_convention, reason = "the counterpart of `to_wire`")]
    fn from_wire(&self, body: &[u8], into: &mut Deltas) -> Result<(), ModelError>;

    /// Creates a parser for one streamed response.
    fn events(&self) -> Box<dyn EventReader>;
}

/// A parser for one response that arrives as server-sent events.
pub trait EventReader: Send {
    /// Parses one event, and appends its deltas to `into`.
    ///
    /// # Errors
    /// Returns an error if the event is invalid or reports a failure.
    fn event(&mut self, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError>;

    /// Returns whether the provider has marked the response as complete. Not every provider does so.
    fn is_over(&self) -> bool {
        false
    }

    /// Ends the stream: appends the delta with the reason why the response ended.
    ///
    /// # Errors
    /// Returns an error if the response is incomplete.
    fn finish(&mut self, into: &mut Deltas) -> Result<(), ModelError>;
}

/// Sets a header to an API key, with a prefix. Does nothing without a key, or if the key is not a valid header value.
pub(crate) fn set_key(name: impl header::IntoHeaderName, prefix: &str, key: Option<&SecretString>, into: &mut HeaderMap) {
    let value = key.and_then(|key| header::HeaderValue::from_str(&format!("{prefix}{}", key.expose_secret())).ok());
    if let Some(mut value) = value {
        value.set_sensitive(true);
        into.insert(name, value);
    }
}

/// Parses a response that is not streamed. Accepts numbers that are not valid JSON, such as `NaN`.
pub(crate) fn read_whole(wire: &dyn Wire, body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    or_mended(body, |body| wire.from_wire(body, into))
}

/// Parses an event. Accepts numbers that are not valid JSON, such as `NaN`.
pub(crate) fn read_event(reader: &mut dyn EventReader, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    or_mended(data, |data| reader.event(name, data, into))
}

/// Parses bytes. If that fails because of numbers that are not valid JSON, replaces them and parses again. A failed parse has added
/// no delta.
fn or_mended(bytes: &[u8], mut read: impl FnMut(&[u8]) -> Result<(), ModelError>) -> Result<(), ModelError> {
    match read(bytes) {
        Err(ModelError::Protocol(reason)) => mended(bytes).map_or(Err(ModelError::Protocol(reason)), |bytes| read(&bytes)),
        result => result,
    }
}

/// Returns the error for a response with too many parts.
pub(crate) fn too_many_parts() -> ModelError {
    ModelError::Protocol(format!("the response has more than {MAX_PARTS} parts"))
}

/// Returns the error for a response that ended before it was complete.
pub(crate) fn incomplete() -> ModelError {
    ModelError::Network("connection closed before the response was complete".into())
}

/// Returns the error for data that violates the provider's API. The message shows the beginning of the data.
pub(crate) fn invalid(what: &str, error: &dyn fmt::Display, data: &[u8]) -> ModelError {
    let text = String::from_utf8_lossy(&data[..data.len().min(4000)]);
    let shown = printable::shorten_words(&printable::escape_line(&text), 160);
    ModelError::Protocol(format!("{what} cannot be parsed ({error}): {shown}"))
}
