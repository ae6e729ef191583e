//! Language models: the trait, what goes in and out, and models over HTTP (feature `models`).
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
pub use crate::compose::{ChosenModel, ModelChoice, NoModel};
#[cfg(feature = "models")]
pub use crate::compose::{Fetch, models::*};
pub use helve_core::{
    Deltas, DynModel, EndReason, Feature, GenerateOptions, LanguageModel, Message, MessageBody, ModelDelta, ModelError, ModelInfo,
    ModelRequest, ModelStream, ModelTool, ModelTools, Part, PollDeltas, ProviderParts, SaidCall, ToolChoice, Usage, WireForm, model_fn,
};
