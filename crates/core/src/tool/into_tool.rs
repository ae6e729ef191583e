//! What can be registered: everything that becomes one tool, or several.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{DynTool, Tool};
use crate::call::{CallContext, ToolCall};
use crate::error::ToolError;
use crate::outcome::Output;
use crate::schema::Schema;
use crate::spec::{SpecError, ToolSpec};

/// How something becomes a tool. A type cannot be two of these, and the compiler finds out which it is.
pub(super) mod kind {
    /// It implements [`Tool`](super::Tool).
    #[derive(Debug)]
    pub enum Untyped {}
    /// It implements [`TypedTool`](crate::TypedTool).
    #[derive(Debug)]
    pub enum Typed {}
    /// It implements [`DynTool`](super::DynTool).
    #[derive(Debug)]
    pub enum Erased {}
    /// It is a [`DynTool`](super::DynTool) that is shared.
    #[derive(Debug)]
    pub enum Shared {}
    /// It is a closure.
    #[derive(Debug)]
    pub enum Closure {}
    /// It has `#[tools]`.
    #[derive(Debug)]
    pub enum Methods {}
    /// It is a list of something.
    #[derive(Debug)]
    pub enum List<Kind> {
        /// Never made.
        Never(std::marker::PhantomData<Kind>, std::convert::Infallible),
    }
}

/// Anything that can be registered as one tool: what `#[tool]` and [`tool_fn`](crate::tool_fn) make, and every type that implements
/// [`TypedTool`](crate::TypedTool), [`Tool`] or [`DynTool`]. The parameter is found by the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be registered as a tool",
    label = "not a tool",
    note = "a function `add` with `#[tool]` is registered as `add::tool()`, a closure as `tool_fn(name, description, closure)`",
    note = "a type implements `TypedTool`, or has methods with `#[tools]` and is registered with `register_tools`"
)]
pub trait IntoTool<Kind> {
    /// Gives the machine's side of the tool.
    ///
    /// # Errors
    /// Where the tool's name, description or schema cannot be used.
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

/// Anything that can be registered as several tools: a list of tools, or a value whose type has `#[tools]`. The parameter is found by
/// the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be registered as tools",
    label = "neither a list of tools nor a type with `#[tools]`",
    note = "put `#[tools]` on an `impl` block of the type, and `#[tool]` on those methods that are tools",
    note = "a single tool is registered with `register_tool`"
)]
pub trait IntoTools<Kind> {
    /// Gives the machine's side of the tools.
    ///
    /// # Errors
    /// Where the name, description or schema of a tool cannot be used.
    fn into_tools(self) -> Result<Vec<Arc<dyn DynTool>>, SpecError>;
}

impl<Kind, T: IntoTool<Kind>, I: IntoIterator<Item = T>> IntoTools<kind::List<Kind>> for I {
    fn into_tools(self) -> Result<Vec<Arc<dyn DynTool>>, SpecError> {
        self.into_iter().map(T::into_tool).collect()
    }
}

/// A type whose methods are tools. `#[tools]` implements it.
pub trait ToolMethods: Send + Sync + 'static {
    /// One tool for each method with `#[tool]`; all share the value.
    fn tools(self: Arc<Self>) -> Vec<Arc<dyn DynTool>>;
}

impl<T: ToolMethods> IntoTools<kind::Methods> for T {
    fn into_tools(self) -> Result<Vec<Arc<dyn DynTool>>, SpecError> {
        Ok(Arc::new(self).tools())
    }
}

/// For a program that keeps the value to look at it.
impl<T: ToolMethods> IntoTools<kind::Methods> for Arc<T> {
    fn into_tools(self) -> Result<Vec<Arc<dyn DynTool>>, SpecError> {
        Ok(self.tools())
    }
}
