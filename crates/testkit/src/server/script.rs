//! The replies of the server: a list, then a function of the request.

use std::fmt;
use std::sync::Arc;

use super::reply::Reply;
use super::request::Request;

type Function = dyn Fn(&Request) -> Reply + Send + Sync;

/// The replies of the server.
#[derive(Clone)]
#[must_use]
pub struct Script {
    replies: Vec<Reply>,
    rest: Option<Arc<Function>>,
    models: Vec<String>,
}

impl Script {
    /// A script without replies.
    pub fn new() -> Self {
        Self { replies: Vec::new(), rest: None, models: vec!["scripted-model".to_owned()] }
    }

    /// A script that computes each reply. If the function panics, the client receives a 500 with the message.
    pub fn from_fn(function: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self { rest: Some(Arc::new(function)), ..Self::new() }
    }

    /// Adds a reply. Replies are sent in order, before the function is called.
    ///
    /// After the end of a script without a function, the server responds with 500.
    pub fn reply(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }

    /// Sets the models that `GET …/models` lists, instead of `scripted-model`. Requests for other models are accepted.
    pub fn with_models<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.models = names.into_iter().map(Into::into).collect();
        self
    }

    /// The reply to a request. Returns `None` after the end.
    pub(super) fn play(&self, request: &Request) -> Option<Reply> {
        let scripted = self.replies.get(request.number).cloned();
        scripted.or_else(|| self.rest.as_ref().map(|function| function(request)))
    }

    /// Number of replies left after `given`.
    pub(super) fn left(&self, given: usize) -> usize {
        self.replies.len().saturating_sub(given)
    }

    pub(super) fn models(&self) -> &[String] {
        &self.models
    }
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        Self::new().reply(reply)
    }
}

impl<const N: usize> From<[Reply; N]> for Script {
    fn from(replies: [Reply; N]) -> Self {
        Self { replies: replies.into(), ..Self::new() }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("replies", &self.replies).field("models", &self.models).finish_non_exhaustive()
    }
}
