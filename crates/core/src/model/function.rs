//! Models from closures, for tests and simple providers.

use std::sync::Arc;

use super::{LanguageModel, ModelError, ModelInfo, ModelRequest, ModelStream};

/// Creates a model from a closure that returns a string, [`Deltas`](super::Deltas) or a [`ModelStream`].
///
/// ```
/// use helve_core::{ModelError, model_fn};
///
/// let echo = model_fn("echo", |request| async move { Ok::<_, ModelError>(request.last_user_text().unwrap_or_default()) });
/// # let _ = echo;
/// ```
pub fn model_fn<F, A, S>(name: impl Into<Arc<str>>, respond: F) -> ModelFn<F>
where
    F: Fn(ModelRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Result<S, ModelError>> + Send,
    S: Into<ModelStream>,
{
    ModelFn { info: ModelInfo::new(name), respond }
}

/// A model created by [`model_fn`].
#[derive(Clone)]
pub struct ModelFn<F> {
    info: ModelInfo,
    respond: F,
}

impl<F> ModelFn<F> {
    /// Changes the name and capabilities of the model.
    #[must_use]
    pub fn with_info(mut self, change: impl FnOnce(&mut ModelInfo)) -> Self {
        change(&mut self.info);
        self
    }
}

impl<F, A, S> LanguageModel for ModelFn<F>
where
    F: Fn(ModelRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Result<S, ModelError>> + Send,
    S: Into<ModelStream>,
{
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        (self.respond)(request).await.map(Into::into)
    }
}

impl<F> std::fmt::Debug for ModelFn<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelFn").field("name", &self.info.name).finish_non_exhaustive()
    }
}
