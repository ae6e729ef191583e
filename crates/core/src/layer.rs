//! One concern around a call, and the way to whatever comes after it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::call::{CallContext, ToolCall};
use crate::error::ToolError;
use crate::outcome::Output;
use crate::tool::DynTool;

/// One concern around the attempt of a call: it may act before, after, instead of, or several times around the rest.
pub trait Layer: Send + Sync + 'static {
    /// Runs the call, usually by [`Next::run`].
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// The layers that are left, and the tool behind them.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    layers: &'a [Arc<dyn Layer>],
    tool: &'a dyn DynTool,
}

impl<'a> Next<'a> {
    /// All layers of a chain, outermost first.
    #[must_use]
    pub fn new(layers: &'a [Arc<dyn Layer>], tool: &'a dyn DynTool) -> Self {
        Self { layers, tool }
    }

    /// The tool at the end of the chain.
    #[must_use]
    pub fn tool(&self) -> &'a dyn DynTool {
        self.tool
    }

    /// Runs the rest. It is `Copy`, so a layer may run it again.
    #[must_use]
    pub fn run(self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        match self.layers.split_first() {
            Some((layer, layers)) => layer.call(call, cx, Next { layers, tool: self.tool }),
            None => self.tool.call(call, cx),
        }
    }
}
