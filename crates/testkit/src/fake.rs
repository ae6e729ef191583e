//! Tools made of closures, and a short way to call one.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynTool, ListSource, Output, Rules, Schema, ToolCall, ToolError, ToolSpec};
use helve_tools::{Catalogue, Executor, Toolkit, View};
use serde_json::{Value, json};

type Work = dyn for<'a> Fn(&'a ToolCall, &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> + Send + Sync;

struct Fake {
    spec: Arc<ToolSpec>,
    work: Box<Work>,
}

impl DynTool for Fake {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        (self.work)(call, cx)
    }
}

/// A spec that accepts any arguments.
///
/// # Panics
/// If the name is not a valid tool name.
#[must_use]
#[expect(clippy::expect_used, reason = "a test that is written wrongly should stop")]
pub fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, "A fake.", Schema::any_object()).expect("a spec")
}

/// A spec with an input schema.
///
/// # Panics
/// If the schema is not valid for arguments.
#[must_use]
#[expect(clippy::expect_used, reason = "a test that is written wrongly should stop")]
pub fn spec_of(name: &str, input: Value) -> ToolSpec {
    ToolSpec::new(name, "A fake.", Schema::new(input).expect("a schema")).expect("a spec")
}

/// A tool made of a closure.
pub fn fake<W>(spec: ToolSpec, work: W) -> Arc<dyn DynTool>
where
    W: for<'a> Fn(&'a ToolCall, &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> + Send + Sync + 'static,
{
    Arc::new(Fake { spec: spec.share(), work: Box::new(work) })
}

/// A tool that returns its arguments.
#[must_use]
pub fn echo(name: &str, rules: Rules) -> Arc<dyn DynTool> {
    fake(spec(name).with_rules(rules), |call, _| Box::pin(async move { Ok(Output::data(call.arguments.clone())) }))
}

/// A toolkit of these tools.
pub fn toolkit(tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Toolkit {
    let catalogue = Catalogue::new();
    catalogue.add_source(Arc::new(ListSource::new("test", tools)));
    Toolkit::everything(&catalogue.snapshot(&View::default()))
}

/// Calls a tool and returns the outcome as JSON.
pub async fn call(executor: &Executor, toolkit: &Toolkit, tool: &str, arguments: Value) -> Value {
    json!(executor.execute(toolkit, ToolCall::new(tool, arguments), &CallContext::default()).await)
}
