//! Language models over HTTP: what is sent and read is pure and stands in one file a wire; one client serves all.

mod anthropic;
mod body;
mod client;
mod ending;
mod failure;
mod gemini;
mod openai_chat;
mod openai_responses;
mod profile;
mod provider;
mod schema;
mod sse;
mod text;
mod wire;

#[cfg(test)]
mod tests;

pub use anthropic::Anthropic;
pub use client::{HttpModel, ModelOptions, Price};
pub use gemini::Gemini;
pub use openai_chat::OpenAiChat;
pub use openai_responses::OpenAiResponses;
pub use provider::{PROVIDERS, Place, Provider, WireKind};
pub use wire::{EventReader, Wire};
