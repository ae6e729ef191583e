//! Google's Gemini API: `generateContent` and `streamGenerateContent`.

mod request;
mod response;

use std::fmt::Write as _;

use helve_core::{Deltas, ModelError, ModelRequest};
use helve_fetch::HeaderMap;
use secrecy::SecretString;

use crate::wire::{EventReader, Wire, set_key};

/// The name of the wire format in stored messages.
const NAME: &str = "gemini";

/// The wire format of the Gemini API. The base URL ends with `/v1beta`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gemini;

impl Wire for Gemini {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self, model: &str, stream: bool) -> String {
        let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        format!("{}:{method}", folder_and_name(model))
    }

    fn headers(&self, key: Option<&SecretString>, into: &mut HeaderMap) {
        set_key("x-goog-api-key", "", key, into);
    }

    fn to_wire(&self, model: &str, request: &ModelRequest) -> Vec<u8> {
        request::write(model, request)
    }

    fn from_wire(&self, body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
        response::whole(body, into)
    }

    fn events(&self) -> Box<dyn EventReader> {
        Box::new(response::Reader::default())
    }
}

/// Returns the URL path of a model. The names of tuned models and of models from other publishers include a folder. Slashes in names
/// with empty, `.` or `..` segments are escaped, so that a name cannot escape its folder.
fn folder_and_name(model: &str) -> String {
    let has_folder = model.contains('/') && !model.split('/').any(|part| matches!(part, "" | "." | ".."));
    let mut path = String::from(if has_folder { "/" } else { "/models/" });
    for byte in model.bytes() {
        match byte {
            b'/' if has_folder => path.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'@' | b':' => path.push(byte.into()),
            // Writing to a string cannot fail.
            other => drop(write!(path, "%{other:02X}")),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_stands_in_the_path() {
        assert_eq!(Gemini.path("gemini-2.5-flash", false), "/models/gemini-2.5-flash:generateContent");
        assert_eq!(Gemini.path("tunedModels/mine", true), "/tunedModels/mine:streamGenerateContent?alt=sse");
        assert_eq!(Gemini.path("a?b#c d%é", false), "/models/a%3Fb%23c%20d%25%C3%A9:generateContent");
        assert_eq!(Gemini.path("tunedModels/a b", false), "/tunedModels/a%20b:generateContent");
        assert_eq!(Gemini.path("../../secret", false), "/models/..%2F..%2Fsecret:generateContent");
        assert_eq!(Gemini.path("a//b\\..", false), "/models/a%2F%2Fb%5C..:generateContent");
    }
}
