//! OpenAI's Chat Completions API, and every server that is compatible with it.

mod request;
mod response;

use helve_core::{Deltas, ModelError, ModelRequest};

use crate::wire::{EventReader, Wire};

/// The name of the wire format in stored messages.
const NAME: &str = "openai_chat";

/// The wire format of Chat Completions, with options for differences between servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiChat {
    /// Whether to send `max_completion_tokens` instead of `max_tokens`, which newer OpenAI models reject.
    pub max_completion_tokens: bool,
    /// Whether to send the reasoning of turns with calls back to the model.
    pub send_reasoning: bool,
}

impl Wire for OpenAiChat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self, _: &str, _: bool) -> String {
        "/chat/completions".to_owned()
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
