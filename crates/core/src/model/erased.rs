//! A language model behind a pointer.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{LanguageModel, ModelError, ModelInfo, ModelRequest, ModelStream};

/// A [`LanguageModel`] behind a pointer. Every model, and every `Arc` of a model, implements this trait.
pub trait DynModel: Send + Sync + 'static {
    /// Returns the name and capabilities of the model.
    fn info(&self) -> &ModelInfo;

    /// Sends one request. Dropping the returned stream cancels the request.
    fn ask(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>>;
}

impl<M: LanguageModel> DynModel for M {
    fn info(&self) -> &ModelInfo {
        LanguageModel::info(self)
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(LanguageModel::ask(self, request))
    }
}

impl<M: DynModel + ?Sized> DynModel for Arc<M> {
    fn info(&self) -> &ModelInfo {
        (**self).info()
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        (**self).ask(request)
    }
}
