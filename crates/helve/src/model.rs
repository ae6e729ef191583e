//! Language models: the [`LanguageModel`] trait, its requests and responses, and models over HTTP (feature `models`).
//!
//! `HttpModel` speaks the APIs of OpenAI (chat and responses), Anthropic and Gemini, and of servers that are compatible with
//! OpenAI, such as Ollama, vLLM and llama.cpp. [`model_fn`] turns a closure into a model, for tests and adapters.
//!
//! ```no_run
//! # #[cfg(feature = "models")]
//! # async fn example(key: String) -> Result<(), Box<dyn std::error::Error>> {
//! use helve::prelude::*;
//!
//! let model = HttpModel::open_router(key, "some/model")?;
//! println!("{}", Agent::new(model).run("Hello!").await?);
//! # Ok(()) }
//! ```

#[cfg(all(feature = "project", feature = "models"))]
pub use crate::compose::{ChooseModelError, ChosenModel, ModelChoice};
#[cfg(feature = "models")]
pub use crate::compose::{Fetch, models::*};
pub use helve_core::{
    Deltas, DynModel, EndReason, Feature, GenerateOptions, LanguageModel, Message, MessageBody, ModelDelta, ModelError, ModelInfo,
    ModelRequest, ModelStream, ModelTool, ModelTools, Part, PollDeltas, ProviderParts, SaidCall, ToolChoice, Usage, WireForm, model_fn,
};
