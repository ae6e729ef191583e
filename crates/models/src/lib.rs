//! Clients for language models over HTTP.
//!
//! A [`Wire`] implements the wire format of a provider API: it serialises requests and parses responses into deltas, without I/O.
//! One client, [`HttpModel`], sends requests and retries them for all wire formats.

mod anthropic;
mod choose;
mod client;
mod ending;
mod failure;
mod gemini;
mod json;
mod list;
mod number;
mod openai_chat;
mod openai_responses;
mod profile;
mod provider;
mod recording;
mod request;
mod schema;
#[cfg(test)]
mod tests;
mod text;
mod wire;

pub use anthropic::Anthropic;
pub use choose::{FoundModel, ModelOrigin, ModelSpec, find, find_local, key_in_environment, list};
pub use client::{HttpModel, ModelOptions, Price};
pub use gemini::Gemini;
pub use openai_chat::OpenAiChat;
pub use openai_responses::OpenAiResponses;
pub use provider::{ModelEndpoint, PROVIDERS, Provider, WireKind};
pub use recording::{Recorder, Replay};
pub use wire::{EventReader, Wire};
