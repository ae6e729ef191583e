//! Conversions into tools, for all types that can be registered.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{DynTool, Tool};
use crate::call::{CallContext, ToolCall};
use crate::error::ToolError;
use crate::outcome::Output;
use crate::schema::Schema;
use crate::spec::{SpecError, ToolSpec};

/// Marker types for the ways to become a tool. They distinguish the implementations of [`IntoTool`]; the compiler infers them.
pub(super) mod kind {
    /// Marks a type that implements [`Tool`](super::Tool).
    #[derive(Debug)]
    pub enum Untyped {}
    /// Marks a type that implements [`TypedTool`](crate::TypedTool).
    #[derive(Debug)]
    pub enum Typed {}
    /// Marks a type that implements [`DynTool`](super::DynTool).
    #[derive(Debug)]
    pub enum Erased {}
    /// Marks a type that is an `Arc` of a [`DynTool`](super::DynTool).
    #[derive(Debug)]
    pub enum Shared {}
    /// Marks a type that is a closure in a [`ToolFn`](crate::ToolFn).
    #[derive(Debug)]
    pub enum Closure {}
    /// Marks a type that has an `impl` block with `#[tools]`.
    #[derive(Debug)]
    pub enum Methods {}
    /// Marks a type that is a list of tools.
    #[derive(Debug)]
    pub enum List<Kind> {
        /// A variant that cannot be constructed.
        Never(std::marker::PhantomData<Kind>, std::convert::Infallible),
    }
}

/// A type that can be registered as one tool: the results of `#[tool]` and [`tool_fn`](crate::tool_fn), and every type that implements
/// [`TypedTool`](crate::TypedTool), [`Tool`] or [`DynTool`]. The compiler infers the parameter `Kind`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be registered as a tool",
    label = "not a tool",
    note = "a function `add` with `#[tool]` is registered as `add::tool()`, a closure as `tool_fn(name, description, closure)`",
    note = "a type implements `TypedTool`, or has methods with `#[tools]` and is registered with `register_tools`"
)]
pub trait IntoTool<Kind> {
    /// Converts the value into a tool for the runtime.
    ///
    /// # Errors
    /// If the name, description or schema is not valid.
    fn into_tool(self) -> Result<Arc<dyn DynTool>, SpecError>;
}

impl IntoTool<kind::Shared> for Arc<dyn DynTool> {
    fn into_tool(self) -> Result<Self, SpecError> {
        Ok(self)
    }
}

impl<T: DynTool> IntoTool<kind::Shared> for Arc<T> {
    fn into_tool(self) -> Result<Arc<dyn DynTool>, SpecError> {
        Ok(self)
    }
}

impl<T: DynTool> IntoTool<kind::Erased> for T {
    fn into_tool(self) -> Result<Arc<dyn DynTool>, SpecError> {
        Ok(Arc::new(self))
    }
}

impl<T: Tool> IntoTool<kind::Untyped> for T {
    fn into_tool(self) -> Result<Arc<dyn DynTool>, SpecError> {
        let name = self.name();
        let spec = ToolSpec::new(name, self.description(), input_schema(name, self.parameters_schema())?)?.with_rules(self.rules()).share();
        Ok(Arc::new(ToolAdapter { spec, tool: self }))
    }
}

/// Checks a schema that the program provides for the arguments of a tool.
pub(super) fn input_schema(tool: &str, schema: Value) -> Result<Schema, SpecError> {
    Schema::new(schema).map_err(|error| SpecError::Schema { name: tool.to_owned(), part: "input", error })
}

struct ToolAdapter<T> {
    spec: Arc<ToolSpec>,
    tool: T,
}

impl<T: Tool> DynTool for ToolAdapter<T> {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, _: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move { self.tool.execute(&call.arguments).await.0 })
    }
}

/// A type that can be registered as several tools: a list of tools, or a type with `#[tools]`. The compiler infers the parameter `Kind`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be registered as tools",
    label = "neither a list of tools nor a type with `#[tools]`",
    note = "put `#[tools]` on an `impl` block of the type, and `#[tool]` on those methods that are tools",
    note = "a single tool is registered with `register_tool`"
)]
pub trait IntoTools<Kind> {
    /// Converts the value into tools for the runtime.
    ///
    /// # Errors
    /// If the name, description or schema of a tool is not valid.
    fn into_tools(self) -> Result<Vec<Arc<dyn DynTool>>, SpecError>;
}

impl<Kind, T: IntoTool<Kind>, I: IntoIterator<Item = T>> IntoTools<kind::List<Kind>> for I {
    fn into_tools(self) -> Result<Vec<Arc<dyn DynTool>>, SpecError> {
        self.into_iter().map(T::into_tool).collect()
    }
}

/// A type whose methods are tools. `#[tools]` implements this trait.
pub trait ToolMethods: Send + Sync + 'static {
    /// Returns one tool for each method with `#[tool]`. All tools share the value.
    fn tools(self: Arc<Self>) -> Vec<Arc<dyn DynTool>>;
}

impl<T: ToolMethods> IntoTools<kind::Methods> for T {
    fn into_tools(self) -> Result<Vec<Arc<dyn DynTool>>, SpecError> {
        Ok(Arc::new(self).tools())
    }
}

/// For programs that keep using the value.
impl<T: ToolMethods> IntoTools<kind::Methods> for Arc<T> {
    fn into_tools(self) -> Result<Vec<Arc<dyn DynTool>>, SpecError> {
        Ok(self.tools())
    }
}
