//! Google's Gemini: `generateContent` and `streamGenerateContent`.

mod answer;
mod request;

use helve_core::{Deltas, ModelError, ModelRequest};
use helve_fetch::HeaderMap;
use secrecy::SecretString;

use crate::anthropic::key_header;
use crate::wire::{EventReader, Wire};

/// The wire's name, for what is written and kept.
const NAME: &str = "gemini";

/// The wire. Its base address ends with `/v1beta`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gemini;

impl Wire for Gemini {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self, model: &str, stream: bool) -> String {
        // Tuned models and those of other publishers have names with a folder.
        let folder = if model.contains('/') { "/" } else { "/models/" };
        let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        format!("{folder}{model}:{method}")
    }

    fn headers(&self, key: Option<&SecretString>, into: &mut HeaderMap) {
        key_header("x-goog-api-key", key, into);
    }

    fn to_wire(&self, model: &str, request: &ModelRequest) -> Vec<u8> {
        request::write(model, request)
    }

    fn from_wire(&self, body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        answer::whole(body, into)
    }

    fn events(&self) -> Box<dyn EventReader> {
        Box::new(answer::Reader::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_stands_in_the_path() {
        assert_eq!(Gemini.path("gemini-2.5-flash", false), "/models/gemini-2.5-flash:generateContent");
        assert_eq!(Gemini.path("tunedModels/mine", true), "/tunedModels/mine:streamGenerateContent?alt=sse");
    }
}
