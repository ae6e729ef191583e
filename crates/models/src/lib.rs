//! Language models over HTTP: what is sent and read is pure and stands in one file a wire; one client serves all.

mod choose;
mod client;
mod failure;
mod openai_chat;
mod profile;
mod provider;
mod sse;
mod tape;
mod wire;

pub use choose::{Because, Found, ModelSpec, find, find_local, key_in_environment, list};
pub use client::{HttpModel, ModelOptions, Price};
pub use openai_chat::OpenAiChat;
pub use provider::{PROVIDERS, Place, Provider, WireKind};
pub use tape::{Record, Replay};
pub use wire::{EventReader, Wire};
