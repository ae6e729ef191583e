//! Language models over HTTP: what is sent and read is pure and stands in one file a wire; one client serves all.

mod anthropic;
mod body;
mod choose;
mod client;
mod ending;
mod failure;
mod gemini;
mod number;
mod openai_chat;
mod openai_responses;
mod profile;
mod provider;
mod schema;
mod tape;
#[cfg(test)]
mod tests;
mod text;
mod wire;

pub use anthropic::Anthropic;
pub use choose::{FoundBy, FoundModel, ModelSpec, find, find_local, key_in_environment, list};
pub use client::{HttpModel, ModelOptions, Price};
pub use gemini::Gemini;
pub use openai_chat::OpenAiChat;
pub use openai_responses::OpenAiResponses;
pub use provider::{ModelEndpoint, PROVIDERS, Provider, WireKind};
pub use tape::{Recorder, Replay};
pub use wire::{EventReader, Wire};
