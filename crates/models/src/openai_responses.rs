//! OpenAI's Responses API, used without state on the server: every request contains the whole conversation, with encrypted reasoning.

mod request;
mod response;

use helve_core::{Deltas, ModelError, ModelRequest};

use crate::wire::{EventReader, Wire};

/// The name of the wire format in stored messages.
const NAME: &str = "openai_responses";

/// The wire format of the Responses API, with options for differences between models. The API has no stop sequences, so those in the
/// request are not sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiResponses {
    /// Whether to omit the request for encrypted reasoning, which models without reasoning reject. For such models of OpenAI, Helve omits
    /// it in any case.
    pub without_reasoning: bool,
}

impl Wire for OpenAiResponses {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self, _: &str, _: bool) -> String {
        "/responses".to_owned()
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
