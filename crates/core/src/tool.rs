//! Tools: [`TypedTool`], [`tool_fn`] and [`Tool`] for authors, [`DynTool`] for the runtime.

mod closure;
mod into_tool;
mod typed;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::call::{CallContext, ToolCall};
use crate::error::ToolError;
use crate::outcome::Output;
use crate::rules::Rules;
use crate::spec::ToolSpec;

pub use self::closure::{ToolFn, tool_fn};
pub use self::into_tool::{IntoTool, IntoTools, ToolMethods};
pub use self::typed::TypedTool;

/// A tool whose schema is only known at run time. For most tools, a function with `#[tool]`, methods with `#[tools]`, or a [`TypedTool`] is
/// simpler.
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
    /// Returns the tool's name for the model.
    fn name(&self) -> &str;

    /// Returns the description for the model.
    fn description(&self) -> &str;

    /// Returns the JSON Schema of the arguments, which must describe an object.
    fn parameters_schema(&self) -> Value;

    /// Returns the rules, which say how calls run.
    fn rules(&self) -> Rules {
        Rules::default()
    }

    /// Runs the tool. The arguments match the schema.
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

/// The result of a [`Tool`].
#[derive(Debug, Clone)]
pub struct ToolResult(pub(crate) Result<Output, ToolError>);

impl ToolResult {
    /// Creates a successful result, with text for the model.
    #[must_use]
    pub fn success(content: impl Into<String>) -> Self {
        Self(Ok(Output::text(content)))
    }

    /// Creates a failed result, with a message for the model.
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

/// A tool as the runtime uses it.
pub trait DynTool: Send + Sync + 'static {
    /// Returns the spec of the tool.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Runs the tool. Before this, layers have validated and permitted the call.
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>>;

    /// Rejects arguments that match the schema but make no sense. Helve calls this before it asks a person for approval.
    ///
    /// # Errors
    /// Usually [`ToolError::invalid_parameters`]. The model reads the message.
    fn validate(&self, _call: &ToolCall) -> Result<(), ToolError> {
        Ok(())
    }

    /// Returns why calls by agents need approval regardless of the rules, or `None` if they do not. The reason is a property of the tool
    /// itself, so that it also applies after the tool was removed from the catalogue.
    fn held_because(&self) -> Option<&str> {
        None
    }

    /// Releases data that the tool keeps for a call that waits for input and will not continue. `state` is the state of the input request.
    fn forget(&self, _call: &ToolCall, _state: &Value) {}
}
