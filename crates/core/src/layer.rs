//! Layers: middleware around tool calls.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::call::{CallContext, ToolCall};
use crate::error::ToolError;
use crate::outcome::Output;
use crate::tool::DynTool;

/// Middleware around one attempt of a call. It runs the rest of the chain once, several times, or not at all.
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
    /// Handles a call, usually with [`Next::run`].
    fn call(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// A [`Layer`] behind a pointer. Every layer implements this trait.
pub trait DynLayer: Send + Sync + 'static {
    /// Handles a call.
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>>;
}

impl<L: Layer> DynLayer for L {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(Layer::call(self, call, cx, next))
    }
}

/// The rest of the chain: the remaining layers, and the tool at its end.
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
    /// Creates a chain of layers, outermost first, with a tool at its end.
    #[must_use]
    pub fn new(layers: &'a [Arc<dyn DynLayer>], tool: &'a dyn DynTool) -> Self {
        Self { layers, tool }
    }

    /// Returns the tool at the end of the chain.
    #[must_use]
    pub fn tool(&self) -> &'a dyn DynTool {
        self.tool
    }

    /// Runs the rest of the chain. `Next` is `Copy`, so a layer can run the rest several times.
    #[must_use]
    pub fn run(self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        match self.layers.split_first() {
            Some((layer, layers)) => layer.call(call, cx, Next { layers, tool: self.tool }),
            None => self.tool.call(call, cx),
        }
    }
}
