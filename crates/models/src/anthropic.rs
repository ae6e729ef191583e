//! Anthropic's Messages API, and every server that is compatible with it.

mod request;
mod response;

use helve_core::{Deltas, ModelError, ModelRequest};
use helve_fetch::{HeaderMap, header};
use secrecy::SecretString;

use crate::wire::{EventReader, Wire, set_key};

/// The name of the wire format in stored messages.
const NAME: &str = "anthropic";

/// The wire format of the Messages API. The base URL ends with `/v1`.
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
        set_key("x-api-key", "", key, into);
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
