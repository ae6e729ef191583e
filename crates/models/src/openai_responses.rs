//! OpenAI's Responses. Nothing is left with the provider: every request says all, and thoughts travel encrypted.

mod request;
mod response;

use helve_core::{Deltas, ModelError, ModelRequest};
use helve_fetch::HeaderMap;
use secrecy::SecretString;

use crate::openai_chat::bearer;
use crate::wire::{EventReader, Wire};

/// The wire's name, for what is written and kept.
const NAME: &str = "openai_responses";

/// The wire, with what differs between models. It knows no texts that end an answer: those of the options are not sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiResponses {
    /// The model does not think, and refuses to be asked for its thoughts. Those of OpenAI are known by their names.
    pub thoughtless: bool,
}

impl Wire for OpenAiResponses {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self, _: &str, _: bool) -> String {
        "/responses".to_owned()
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
