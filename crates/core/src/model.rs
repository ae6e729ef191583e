//! A language model, seen from inside: one request, a stream of pieces, typed errors. What a model can do is data.

mod delta;
mod erased;
mod error;
mod function;
mod stream;

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::{Message, MessageBody, Part, Written};
use crate::schema::Schema;

pub use self::delta::{Deltas, EndReason, ModelDelta, Usage};
pub use self::erased::DynModel;
pub use self::error::{Feature, ModelError};
pub use self::function::{ModelFn, model_fn};
pub use self::stream::{ModelStream, PollDeltas};

/// Something that answers messages.
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
    /// What it is and what it can do.
    fn info(&self) -> &ModelInfo;

    /// Asks once. Dropping the stream stops the model.
    fn ask(&self, request: ModelRequest) -> impl Future<Output = Result<ModelStream, ModelError>> + Send;
}

/// What a model is and what it can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its name, as the provider knows it.
    pub name: Arc<str>,
    /// Who runs it.
    pub provider: Arc<str>,
    /// How it is spoken to, such as `openai_chat`.
    pub wire: Arc<str>,
    /// Whether it calls functions natively; nothing where nobody has tried.
    pub calls_natively: Option<bool>,
    /// Whether the server can hold its output to a JSON Schema.
    pub constrains_output: bool,
    /// How many tokens fit, where known.
    pub context_tokens: Option<u32>,
}

impl ModelInfo {
    /// What is known of a model that calls tools natively; nothing else is. The fields can be set.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        Self { provider: name.clone(), name, calls_natively: Some(true), ..Self::default() }
    }
}

/// One request to a model.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// What was said so far.
    pub messages: Vec<Arc<Message>>,
    /// The tools it may call natively.
    pub tools: Arc<ModelTools>,
    /// Whether it must call one.
    pub tool_choice: ToolChoice,
    /// A schema that the whole answer must fit, where the server can hold it to one.
    pub output: Option<Schema>,
    /// How to answer.
    pub options: Arc<GenerateOptions>,
    /// Whether the answer should come in pieces, as it is made.
    pub stream: bool,
}

impl ModelRequest {
    /// What the user said last, without pictures; `None` if the user said nothing yet.
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

/// The tools that a model is told about. They never change, so they are written once for its wire.
#[derive(Clone, Default)]
pub struct ModelTools {
    list: Vec<ModelTool>,
    written: Written,
}

impl ModelTools {
    /// A list, in order.
    #[must_use]
    pub fn new(list: Vec<ModelTool>) -> Self {
        Self { list, written: Written::default() }
    }

    /// The list in the form of a wire.
    #[must_use]
    pub fn written(&self) -> &Written {
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, crate::Setters)]
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
