//! Language models: requests, streamed responses, errors. The capabilities of a model are data.

mod delta;
mod erased;
mod error;
mod function;
mod stream;

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::{Message, MessageBody, Part, WireForm};
use crate::schema::Schema;

pub use self::delta::{Deltas, EndReason, ModelDelta, Usage};
pub use self::erased::DynModel;
pub use self::error::{Feature, ModelError};
pub use self::function::{ModelFn, model_fn};
pub use self::stream::{ModelStream, PollDeltas};

/// A language model.
///
/// ```
/// use helve_core::{LanguageModel, ModelError, ModelInfo, ModelRequest, ModelStream};
///
/// struct Echo(ModelInfo);
///
/// impl LanguageModel for Echo {
///     fn info(&self) -> &ModelInfo {
///         &self.0
///     }
///
///     async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
///         Ok(request.last_user_text().unwrap_or_default().into())
///     }
/// }
///
/// let model = Echo(ModelInfo::new("echo"));
/// # let _ = model;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a language model",
    note = "implement `LanguageModel`, or use `model_fn`; a model of any type is an `Arc<dyn DynModel>`"
)]
pub trait LanguageModel: Send + Sync + 'static {
    /// Name and capabilities.
    fn info(&self) -> &ModelInfo;

    /// Sends one request. Dropping the stream cancels it.
    fn ask(&self, request: ModelRequest) -> impl Future<Output = Result<ModelStream, ModelError>> + Send;
}

/// Name and capabilities of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The provider's name of the model.
    pub name: Arc<str>,
    /// The provider.
    pub provider: Arc<str>,
    /// The wire format, such as `openai_chat`.
    pub wire: Arc<str>,
    /// Whether it supports native function calling; `None` if unknown.
    pub calls_natively: Option<bool>,
    /// Whether the server can constrain its output to a JSON Schema.
    pub constrains_output: bool,
    /// Size of its context window in tokens, if known.
    pub context_tokens: Option<u32>,
}

impl ModelInfo {
    /// A model with native function calling, of which nothing else is known.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        Self { provider: name.clone(), name, calls_natively: Some(true), ..Self::default() }
    }
}

/// A request to a model.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The conversation so far.
    pub messages: Vec<Arc<Message>>,
    /// Tools for native function calling.
    pub tools: Arc<ModelTools>,
    /// Whether the model may, must or must not call tools.
    pub tool_choice: ToolChoice,
    /// JSON Schema of the whole response, if the server can constrain it.
    pub output: Option<Schema>,
    /// Sampling options.
    pub options: Arc<GenerateOptions>,
    /// Whether to stream the response.
    pub stream: bool,
}

impl ModelRequest {
    /// The text of the last user message; `None` if there is none.
    #[must_use]
    pub fn last_user_text(&self) -> Option<String> {
        let said = self.messages.iter().rev().find_map(|message| match message.body() {
            MessageBody::User { parts } => Some(parts),
            _ => None,
        })?;
        let texts = said.iter().filter_map(|part| if let Part::Text { text } = part { Some(&**text) } else { None });
        Some(texts.collect::<Vec<_>>().join("\n"))
    }
}

/// The tools of a request. They never change, so their wire form is cached.
#[derive(Clone, Default)]
pub struct ModelTools {
    list: Vec<ModelTool>,
    written: WireForm,
}

impl ModelTools {
    /// Tools, in order.
    #[must_use]
    pub fn new(list: Vec<ModelTool>) -> Self {
        Self { list, written: WireForm::default() }
    }

    /// The cached wire form of the list.
    #[must_use]
    pub fn written(&self) -> &WireForm {
        &self.written
    }
}

impl Deref for ModelTools {
    type Target = [ModelTool];

    fn deref(&self) -> &[ModelTool] {
        &self.list
    }
}

impl std::fmt::Debug for ModelTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.list.fmt(f)
    }
}

/// A tool as the model sees it.
#[derive(Debug, Clone)]
pub struct ModelTool {
    /// The name that the model uses.
    pub name: Arc<str>,
    /// The description, with the names of other tools as the model knows them.
    pub description: Arc<str>,
    /// JSON Schema of the arguments.
    pub parameters: Schema,
}

/// Whether a model may, must or must not call tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must not call tools.
    None,
    /// It must call some tool.
    Required,
    /// It must call this tool.
    Specific(Arc<str>),
}

/// Sampling options. The provider's defaults apply to what is not set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, crate::Setters)]
#[serde(default)]
pub struct GenerateOptions {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling: the share of likely tokens to consider.
    pub top_p: Option<f64>,
    /// Maximum length of the response in tokens.
    pub max_tokens: Option<u32>,
    /// Texts that end the response.
    pub stop: Vec<String>,
    /// Extra fields of the request, for one provider.
    pub extra: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Parrot(ModelInfo);

    impl LanguageModel for Parrot {
        fn info(&self) -> &ModelInfo {
            &self.0
        }

        async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
            let last = request.last_user_text().ok_or_else(|| ModelError::Protocol("nothing was said".into()))?;
            let said = [ModelDelta::Text(&last), ModelDelta::End(EndReason::Stop)];
            Ok(said.into_iter().collect::<Deltas>().into())
        }
    }

    #[tokio::test]
    async fn a_model_behind_the_trait_is_asked_and_streams() {
        let model: Arc<dyn DynModel> = Arc::new(Parrot(ModelInfo::new("parrot")));
        let request = ModelRequest { messages: vec![Arc::new(Message::user("hello"))], ..ModelRequest::default() };
        let (mut stream, mut said) = (model.ask(request).await.expect("a stream"), Deltas::default());
        assert!(stream.read(&mut said).await.expect("pieces"));
        let told: Vec<_> = said.iter().collect();
        assert!(matches!(&told[..], [ModelDelta::Text(text), ModelDelta::End(EndReason::Stop)] if text.contains("hello")));
        assert!(!stream.read(&mut said).await.expect("the end"));
        let error = model.ask(ModelRequest::default()).await.map(|_| ()).expect_err("nothing to say");
        assert!(!error.is_retryable());
    }

    #[tokio::test]
    async fn a_function_is_a_model_and_its_answer_a_stream() {
        use futures_util::TryStreamExt;

        let model = model_fn("echo", |request| async move { request.last_user_text().ok_or(ModelError::Protocol("nothing".into())) });
        let parts = vec![Part::Text { text: "hello".into() }, Part::Text { text: "there".into() }];
        let said = [Message::user("before"), Message::new(MessageBody::User { parts }), Message::assistant("hm")];
        let request = ModelRequest { messages: said.map(Arc::new).into(), ..ModelRequest::default() };
        let stream = LanguageModel::ask(&model, request).await.expect("a stream");
        let groups: Vec<Deltas> = stream.try_collect().await.expect("an answer");
        let said: Vec<_> = groups.iter().flat_map(Deltas::iter).collect();
        assert_eq!(said, [ModelDelta::Text("hello\nthere"), ModelDelta::End(EndReason::Stop)]);
        assert_eq!(&*DynModel::info(&Arc::new(model)).name, "echo");
    }
}
