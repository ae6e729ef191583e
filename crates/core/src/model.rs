//! Language models: requests, streamed responses, errors. The capabilities of a model are data, not methods.

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
    /// Returns the name and capabilities of the model.
    fn info(&self) -> &ModelInfo;

    /// Sends one request. Dropping the returned stream cancels the request.
    fn ask(&self, request: ModelRequest) -> impl Future<Output = Result<ModelStream, ModelError>> + Send;
}

/// Name and capabilities of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The model's name at its provider.
    pub name: Arc<str>,
    /// The name of the provider.
    pub provider: Arc<str>,
    /// The wire format, such as `openai_chat`.
    pub wire: Arc<str>,
    /// Whether the model supports native function calling; `None` if unknown.
    pub calls_natively: Option<bool>,
    /// Whether the server can constrain the model's output to a JSON Schema.
    pub constrains_output: bool,
    /// Size of the model's context window in tokens, if known.
    pub context_tokens: Option<u32>,
}

impl ModelInfo {
    /// Describes a model with native function calling. All other properties are unknown.
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
    /// The messages of the conversation so far.
    pub messages: Vec<Arc<Message>>,
    /// Tools for native function calling.
    pub tools: Arc<ModelTools>,
    /// Whether the model may, must or must not call tools.
    pub tool_choice: ToolChoice,
    /// JSON Schema that the whole response must match; only for servers that can constrain output.
    pub output: Option<Schema>,
    /// Sampling options.
    pub options: Arc<GenerateOptions>,
    /// Whether to stream the response.
    pub stream: bool,
}

impl ModelRequest {
    /// Returns the text of the last user message, or `None` if there is no user message.
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

/// The tools of a request. The list never changes, so its wire form is cached.
#[derive(Clone, Default)]
pub struct ModelTools {
    list: Vec<ModelTool>,
    written: WireForm,
}

impl ModelTools {
    /// Creates the list of tools, in order.
    #[must_use]
    pub fn new(list: Vec<ModelTool>) -> Self {
        Self { list, written: WireForm::default() }
    }

    /// Returns the cached wire form of the list.
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
    /// The tool's name for the model.
    pub name: Arc<str>,
    /// The description for the model. It mentions other tools by their names for the model.
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
    /// The model must not call tools.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call this tool.
    Specific(Arc<str>),
}

/// Sampling options. For options that are not set, the provider's defaults apply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, crate::Setters)]
#[serde(default)]
pub struct GenerateOptions {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling: the probability mass of the tokens to choose from.
    pub top_p: Option<f64>,
    /// Maximum length of the response in tokens.
    pub max_tokens: Option<u32>,
    /// Sequences at which the model stops.
    pub stop: Vec<String>,
    /// Additional fields of the request, specific to one provider.
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
