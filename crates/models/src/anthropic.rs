//! Anthropic's Messages, and everything that speaks them.

mod request;
mod response;

use helve_core::{Deltas, ModelError, ModelRequest};
use helve_fetch::{HeaderMap, header};
use secrecy::{ExposeSecret, SecretString};

use crate::wire::{EventReader, Wire};

/// The wire's name, for what is written and kept.
const NAME: &str = "anthropic";

/// The wire. Its base address ends with `/v1`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Anthropic;

impl Wire for Anthropic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self, _: &str, _: bool) -> String {
        "/messages".to_owned()
    }

    fn headers(&self, key: Option<&SecretString>, into: &mut HeaderMap) {
        key_header("x-api-key", key, into);
        into.entry("anthropic-version").or_insert(header::HeaderValue::from_static("2023-06-01"));
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

/// The key in a header of its own.
pub(crate) fn key_header(name: &'static str, key: Option<&SecretString>, into: &mut HeaderMap) {
    let value = key.and_then(|key| header::HeaderValue::from_str(key.expose_secret()).ok());
    if let Some(mut value) = value {
        value.set_sensitive(true);
        into.insert(name, value);
    }
}
