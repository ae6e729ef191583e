//! A tool, from its two sides: for authors [`TypedTool`], [`tool_fn`] and [`Tool`], for the machine [`DynTool`].

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

/// A tool whose schema is only known when the program runs. Most tools are simpler as a function with `#[tool]`, as methods with
/// `#[tools]`, or as a [`TypedTool`].
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

    /// Refuses arguments that fit the schema and make no sense all the same. It runs before a person is asked for permission.
    ///
    /// # Errors
    /// Usually [`ToolError::invalid_parameters`]; the model reads why.
    fn validate(&self, _call: &ToolCall) -> Result<(), ToolError> {
        Ok(())
    }

    /// Why agents ask a person before each call, whatever the rules say; `None` if they need not. It belongs to the tool itself, so that it
    /// also holds for a call of a tool that is not offered any more.
    fn held_because(&self) -> Option<&str> {
        None
    }

    /// A call that asked a person for something does not go on, and what is kept for it can go. `state` is what came with the request.
    fn forget(&self, _call: &ToolCall, _state: &Value) {}
}
