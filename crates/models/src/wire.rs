//! A wire: pure functions from a request to bytes, and from bytes to the deltas of a response.

use std::fmt;

use helve_core::{Deltas, ModelError, ModelRequest, printable};
use helve_fetch::{HeaderMap, header};
use secrecy::{ExposeSecret, SecretString};

use crate::list::MAX_PARTS;
use crate::number::mended;

/// The API of one kind of provider. Its methods do no I/O.
pub trait Wire: Send + Sync + 'static {
    /// The name of the wire.
    fn name(&self) -> &'static str;

    /// The path of requests, after the provider's base URL.
    fn path(&self, model: &str, stream: bool) -> String;

    /// Sets the headers that the provider needs: by default, the key as a bearer token.
    fn headers(&self, key: Option<&SecretString>, into: &mut HeaderMap) {
        set_key(header::AUTHORIZATION, "Bearer ", key, into);
    }

    /// Writes the body of a request.
    fn to_wire(&self, model: &str, request: &ModelRequest) -> Vec<u8>;

    /// Reads a response that is not streamed.
    ///
    /// # Errors
    /// Returns an error if it is not a valid response, or if it reports a failure.
    #[expect(clippy::wrong_self_convention, reason = "the counterpart of `to_wire`")]
    fn from_wire(&self, body: &[u8], into: &mut Deltas) -> Result<(), ModelError>;

    /// A reader for one streamed response.
    fn events(&self) -> Box<dyn EventReader>;
}

/// Reads one response that comes as server-sent events.
pub trait EventReader: Send {
    /// Reads one event.
    ///
    /// # Errors
    /// Returns an error if the event is not valid, or if it reports a failure.
    fn event(&mut self, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError>;

    /// Whether the provider said that the response is complete. Not every provider does.
    fn is_over(&self) -> bool {
        false
    }

    /// The stream has ended: adds the reason why the response ended.
    ///
    /// # Errors
    /// Returns an error if the response is incomplete.
    fn finish(&mut self, into: &mut Deltas) -> Result<(), ModelError>;
}

/// Sets a header to a key.
pub(crate) fn set_key(name: impl header::IntoHeaderName, prefix: &str, key: Option<&SecretString>, into: &mut HeaderMap) {
    let value = key.and_then(|key| header::HeaderValue::from_str(&format!("{prefix}{}", key.expose_secret())).ok());
    if let Some(mut value) = value {
        value.set_sensitive(true);
        into.insert(name, value);
    }
}

/// Reads a response that is not streamed, also if its numbers are not JSON.
pub(crate) fn read_whole(wire: &dyn Wire, body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    or_mended(body, |body| wire.from_wire(body, into))
}

/// Reads an event, also if its numbers are not JSON.
pub(crate) fn read_event(reader: &mut dyn EventReader, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    or_mended(data, |data| reader.event(name, data, into))
}

/// Reads bytes, and reads them again if they could not be parsed and can be mended. A failed parse has added no delta.
fn or_mended(bytes: &[u8], mut read: impl FnMut(&[u8]) -> Result<(), ModelError>) -> Result<(), ModelError> {
    match read(bytes) {
        Err(ModelError::Protocol(reason)) => mended(bytes).map_or(Err(ModelError::Protocol(reason)), |bytes| read(&bytes)),
        result => result,
    }
}

/// The response has too many parts.
pub(crate) fn too_many_parts() -> ModelError {
    ModelError::Protocol(format!("the response has more than {MAX_PARTS} parts"))
}

/// The response ended before it was complete.
pub(crate) fn incomplete() -> ModelError {
    ModelError::Network("connection closed before the response was complete".into())
}

/// Something is not what the provider's API promises. The error shows its beginning.
pub(crate) fn invalid(what: &str, error: &dyn fmt::Display, data: &[u8]) -> ModelError {
    let text = String::from_utf8_lossy(&data[..data.len().min(4000)]);
    let shown = printable::shorten_words(&printable::escape_line(&text), 160);
    ModelError::Protocol(format!("{what} cannot be parsed ({error}): {shown}"))
}
