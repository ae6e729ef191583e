//! A model behind a pointer.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{LanguageModel, ModelError, ModelInfo, ModelRequest, ModelStream};

/// A [`LanguageModel`] behind a pointer. Every model and every `Arc` of one implements it.
pub trait DynModel: Send + Sync + 'static {
    /// Name and capabilities.
    fn info(&self) -> &ModelInfo;

    /// Sends one request. Dropping the stream cancels it.
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
