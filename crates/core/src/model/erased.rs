//! A model behind a pointer.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{LanguageModel, ModelError, ModelInfo, ModelRequest, ModelStream};

/// A [`LanguageModel`] behind a pointer; every model is one, and so is every shared model.
pub trait DynModel: Send + Sync + 'static {
    /// What it is and what it can do.
    fn info(&self) -> &ModelInfo;

    /// Asks once. Dropping the stream stops the model.
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
