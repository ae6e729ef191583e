//! Middleware around tool calls.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::call::{CallContext, ToolCall};
use crate::error::ToolError;
use crate::outcome::Output;
use crate::tool::DynTool;

/// Middleware around an attempt of a call: it runs the rest of the chain once, several times, or not at all.
///
/// ```
/// use helve_core::{CallContext, Layer, Next, Output, ToolCall, ToolError};
///
/// struct Log;
///
/// impl Layer for Log {
///     async fn call(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> Result<Output, ToolError> {
///         let result = next.run(call, cx).await;
///         println!("{}: {}", call.tool, if result.is_ok() { "fine" } else { "failed" });
///         result
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layer",
    note = "implement `Layer` with `async fn call(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> Result<Output, ToolError>`"
)]
pub trait Layer: Send + Sync + 'static {
    /// Handles the call, usually with [`Next::run`].
    fn call(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// A [`Layer`] behind a pointer. Every layer implements it.
pub trait DynLayer: Send + Sync + 'static {
    /// Handles the call.
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>>;
}

impl<L: Layer> DynLayer for L {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(Layer::call(self, call, cx, next))
    }
}

/// The remaining layers and the tool at the end of the chain.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    layers: &'a [Arc<dyn DynLayer>],
    tool: &'a dyn DynTool,
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("layers", &self.layers.len()).field("tool", &self.tool).finish()
    }
}

impl<'a> Next<'a> {
    /// A chain of layers, outermost first.
    #[must_use]
    pub fn new(layers: &'a [Arc<dyn DynLayer>], tool: &'a dyn DynTool) -> Self {
        Self { layers, tool }
    }

    /// The tool at the end of the chain.
    #[must_use]
    pub fn tool(&self) -> &'a dyn DynTool {
        self.tool
    }

    /// Runs the rest of the chain. It is `Copy`, so a layer can run it again.
    #[must_use]
    pub fn run(self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        match self.layers.split_first() {
            Some((layer, layers)) => layer.call(call, cx, Next { layers, tool: self.tool }),
            None => self.tool.call(call, cx),
        }
    }
}
