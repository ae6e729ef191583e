//! A tool, from its two sides: [`Tool`] for authors, [`DynTool`] for the machine.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::call::{CallContext, ToolCall};
use crate::error::ToolError;
use crate::outcome::Output;
use crate::rules::Rules;
use crate::schema::Schema;
use crate::spec::{SpecError, ToolSpec};

/// A tool as its author writes it. Most tools are simpler as a function with `#[tool]`.
///
/// ```
/// use helve_core::{Tool, ToolResult};
/// use serde_json::{Value, json};
///
/// struct Shout;
///
/// impl Tool for Shout {
///     fn name(&self) -> &str { "shout" }
///     fn description(&self) -> &str { "Says it louder." }
///     fn parameters_schema(&self) -> Value {
///         json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
///     }
///     async fn execute(&self, params: &Value) -> ToolResult {
///         match params["text"].as_str() {
///             Some(text) => ToolResult::success(text.to_uppercase()),
///             None => ToolResult::error("nothing to shout"),
///         }
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// The name the model calls it by.
    fn name(&self) -> &str;

    /// What it does, for the model.
    fn description(&self) -> &str;

    /// JSON Schema of the arguments: an object.
    fn parameters_schema(&self) -> Value;

    /// How calls run.
    fn rules(&self) -> Rules {
        Rules::default()
    }

    /// Does the work. The arguments have been validated.
    fn execute(&self, params: &Value) -> impl Future<Output = ToolResult> + Send;
}

impl<T: Tool> Tool for Box<T> {
    fn name(&self) -> &str {
        T::name(self)
    }

    fn description(&self) -> &str {
        T::description(self)
    }

    fn parameters_schema(&self) -> Value {
        T::parameters_schema(self)
    }

    fn rules(&self) -> Rules {
        T::rules(self)
    }

    fn execute(&self, params: &Value) -> impl Future<Output = ToolResult> + Send {
        T::execute(self, params)
    }
}

/// What a [`Tool`] gives back.
#[derive(Debug, Clone)]
pub struct ToolResult(pub(crate) Result<Output, ToolError>);

impl ToolResult {
    /// It worked; this is what the model reads.
    #[must_use]
    pub fn success(content: impl Into<String>) -> Self {
        Self(Ok(Output::text(content)))
    }

    /// It did not; this is what the model reads.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Self(Err(ToolError::failed(message)))
    }
}

impl From<Result<Output, ToolError>> for ToolResult {
    fn from(result: Result<Output, ToolError>) -> Self {
        Self(result)
    }
}

/// A tool as the machine sees it.
pub trait DynTool: Send + Sync + 'static {
    /// What it says about itself.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Does the work of one call. Layers have validated and permitted it.
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>>;

    /// Why agents ask a person before each call, whatever the rules say; `None` if they need not. It belongs to the tool itself, so that it
    /// also holds for a call of a tool that is not offered any more.
    fn held_because(&self) -> Option<&str> {
        None
    }

    /// A call that asked a person for something does not go on, and what is kept for it can go. `state` is what came with the question.
    fn forget(&self, _call: &ToolCall, _state: &Value) {}
}

/// Anything that can be registered as a tool: a [`Tool`], or one that is already erased.
pub trait IntoTool {
    /// Gives the machine's side of the tool.
    ///
    /// # Errors
    /// Where the tool's name, description or schema cannot be used.
    fn into_tool(self) -> Result<Arc<dyn DynTool>, SpecError>;
}

impl IntoTool for Arc<dyn DynTool> {
    fn into_tool(self) -> Result<Self, SpecError> {
        Ok(self)
    }
}

impl<T: Tool> IntoTool for T {
    fn into_tool(self) -> Result<Arc<dyn DynTool>, SpecError> {
        let name = self.name().to_owned();
        let refused = |error| SpecError::Schema { name: name.clone(), part: "input", error };
        let input = Schema::new(self.parameters_schema()).map_err(refused)?;
        let spec = ToolSpec::new(name.as_str(), self.description().to_owned(), input)?.with_rules(self.rules()).share();
        Ok(Arc::new(Erased { spec, tool: self }))
    }
}

struct Erased<T> {
    spec: Arc<ToolSpec>,
    tool: T,
}

impl<T: Tool> DynTool for Erased<T> {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, _: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move { self.tool.execute(&call.arguments).await.0 })
    }
}
