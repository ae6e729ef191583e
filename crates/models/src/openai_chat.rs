//! OpenAI's Chat Completions, and everything that speaks them.

mod request;
mod response;

use helve_core::{Deltas, ModelError, ModelRequest};
use helve_fetch::{HeaderMap, header};
use secrecy::{ExposeSecret, SecretString};

use crate::wire::{EventReader, Wire};

/// The wire, with what differs between those who speak it.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiChat {
    /// The field for the longest answer: newer models of OpenAI refuse `max_tokens`.
    pub max_completion_tokens: bool,
    /// Whether thoughts of turns with calls must be sent back.
    pub thoughts_back: bool,
}

impl Wire for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai_chat"
    }

    fn path(&self, _: &str, _: bool) -> String {
        "/chat/completions".to_owned()
    }

    fn headers(&self, key: Option<&SecretString>, into: &mut HeaderMap) {
        bearer(key, into);
    }

    fn to_wire(&self, model: &str, request: &ModelRequest) -> Vec<u8> {
        request::write(*self, model, request)
    }

    fn from_wire(&self, body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        response::whole(body, into)
    }

    fn events(&self) -> Box<dyn EventReader> {
        Box::new(response::Reader::default())
    }
}

/// The key as a bearer token.
pub(crate) fn bearer(key: Option<&SecretString>, into: &mut HeaderMap) {
    let value = key.and_then(|key| header::HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())).ok());
    if let Some(mut value) = value {
        value.set_sensitive(true);
        into.insert(header::AUTHORIZATION, value);
    }
}
