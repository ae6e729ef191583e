//! Language models over HTTP: what is sent and read is pure and stands in one file a wire; one client serves all.

mod client;
mod failure;
mod openai_chat;
mod profile;
mod provider;
mod sse;
mod wire;

pub use client::{HttpModel, ModelOptions, Price};
pub use openai_chat::OpenAiChat;
pub use provider::{PROVIDERS, Place, Provider, WireKind};
pub use wire::{EventReader, Wire};
