//! A language model, seen from inside: one question, a stream of pieces, typed errors. What a model can do is data.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Message;
use crate::schema::Schema;

/// Something that answers messages.
pub trait LanguageModel: Send + Sync + 'static {
    /// What it is and what it can do.
    fn info(&self) -> &ModelInfo;

    /// Asks once. Dropping the stream stops the model.
    fn ask(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>>;
}

/// The pieces of an answer, as they come. After an error or [`ModelDelta::End`] nothing follows.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelDelta, ModelError>> + Send>>;

/// What a model is and what it can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelInfo {
    /// Its name, as the provider knows it.
    pub name: Arc<str>,
    /// Who runs it.
    pub provider: Arc<str>,
    /// Whether it calls functions natively; nothing where nobody has tried.
    pub calls_natively: Option<bool>,
    /// Whether the server can hold its output to a JSON Schema.
    pub constrains_output: bool,
    /// How many tokens fit, where known.
    pub context_tokens: Option<u32>,
}

/// One question to a model.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// What was said so far.
    pub messages: Vec<Arc<Message>>,
    /// The tools it may call natively.
    pub tools: Arc<[ModelTool]>,
    /// Whether it must call one.
    pub tool_choice: ToolChoice,
    /// A schema that the whole answer must fit, where the server can hold it to one.
    pub output: Option<Schema>,
    /// How to answer.
    pub options: GenerateOptions,
}

/// What a model is told about one tool.
#[derive(Debug, Clone)]
pub struct ModelTool {
    /// The name it must use.
    pub name: Arc<str>,
    /// What the tool does, with the names of other tools as the model knows them.
    pub description: Arc<str>,
    /// What arguments must look like.
    pub parameters: Schema,
}

/// Whether a model may, must or must not call tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// It decides.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call some tool.
    Required,
    /// It must call this tool.
    Specific(Arc<str>),
}

/// How a model answers. What is not given is left to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GenerateOptions {
    /// From exact to playful.
    pub temperature: Option<f64>,
    /// The share of likely words that are considered.
    pub top_p: Option<f64>,
    /// How long the answer may be.
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Fields for one provider, sent as they are.
    pub extra: Map<String, Value>,
}

/// One piece of an answer. Calls may come in pieces, without ids, all at once, or interleaved by index.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelDelta {
    /// Words.
    Text(String),
    /// Thoughts that are shown.
    Reasoning(String),
    /// A piece of a call.
    Call {
        /// Which call of the answer, where the provider says.
        index: Option<u32>,
        /// The provider's id.
        id: Option<String>,
        /// The tool's name, or a piece of it.
        name: Option<String>,
        /// A piece of the arguments, as JSON text.
        arguments: String,
    },
    /// What it cost.
    Usage(Usage),
    /// The answer is over.
    End(EndReason),
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// It said what it had to say.
    Stop,
    /// It waits for its calls.
    Calls,
    /// It ran into its limit.
    Length,
    /// The provider cut it off.
    Filter,
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens read from the provider's cache; part of those read.
    pub cached_tokens: u64,
    /// Tokens written, thoughts included.
    pub output_tokens: u64,
    /// Money in US dollars, where known.
    pub cost: Option<f64>,
}

/// Why a model did not answer, and so what can be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The key is missing or wrong.
    #[error("the model's provider refused the key: {0}")]
    Auth(String),
    /// The account is used up.
    #[error("the account has no credit or quota left: {0}")]
    Quota(String),
    /// The conversation does not fit.
    #[error("the conversation is longer than the model can read: {0}")]
    ContextLength(String),
    /// The provider refuses the content.
    #[error("the provider refused the content: {0}")]
    Filter(String),
    /// The provider is busy.
    #[error("the model is overloaded: {message}")]
    Overloaded {
        /// What it said.
        message: String,
        /// When to try again, where it said so.
        retry_after: Option<Duration>,
    },
    /// No connection, or one that broke.
    #[error("the model cannot be reached: {0}")]
    Network(String),
    /// An answer that is none.
    #[error("the model's answer makes no sense: {0}")]
    Protocol(String),
}

impl ModelError {
    /// Whether asking again may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Overloaded { .. } | Self::Network(_))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    struct Parrot(ModelInfo);

    impl LanguageModel for Parrot {
        fn info(&self) -> &ModelInfo {
            &self.0
        }

        fn ask(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
            Box::pin(async move {
                let Some(last) = request.messages.last() else { return Err(ModelError::Protocol("nothing was said".into())) };
                let said = ModelDelta::Text(format!("{last:?}"));
                Ok(stream::iter([Ok(said), Ok(ModelDelta::End(EndReason::Stop))]).boxed())
            })
        }
    }

    #[tokio::test]
    async fn a_model_behind_the_trait_is_asked_and_streams() {
        let model: Arc<dyn LanguageModel> = Arc::new(Parrot(ModelInfo { name: "parrot".into(), ..ModelInfo::default() }));
        let request = ModelRequest { messages: vec![Arc::new(Message::user("hello"))], ..ModelRequest::default() };
        let said: Vec<_> = model.ask(request).await.expect("a stream").collect().await;
        assert!(matches!(&said[..], [Ok(ModelDelta::Text(text)), Ok(ModelDelta::End(EndReason::Stop))] if text.contains("hello")));
        let error = model.ask(ModelRequest::default()).await.map(|_| ()).expect_err("nothing to say");
        assert!(!error.is_retryable());
    }
}
