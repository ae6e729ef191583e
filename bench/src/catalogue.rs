//! What many tools cost: a picture of ten thousand, and the list that a model is told.

use std::hint::black_box;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve::catalogue::{Catalogue, ListSource, SourceState, ToolList, Toolkit, View};
use helve::tool::{DynTool, Schema, ToolSpec};
use helve::{CallContext, Output, ToolCall, ToolError};
use serde_json::json;

use crate::cpu;
use crate::report::Report;

const TOOLS: usize = 10_000;

struct Inert(Arc<ToolSpec>);

impl DynTool for Inert {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, _: &'a ToolCall, _: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async { Ok(Output::default()) })
    }
}

fn tools(name: impl Fn(usize) -> String) -> ToolList {
    let make = |number: usize| {
        let schema = Schema::new(json!({"type": "object", "required": ["query"], "properties": {
            "query": {"type": "string", "description": format!("Words for tool {number}.")},
            "count": {"type": "integer", "minimum": 1, "default": 10},
            "order": {"enum": ["newest", "oldest"]}}}));
        let spec = ToolSpec::new(name(number), format!("Does thing number {number} and says so."), schema.expect("a schema"));
        Arc::new(Inert(spec.expect("a spec").share())) as Arc<dyn DynTool>
    };
    (0..TOOLS).map(make).collect()
}

fn snapshot_and_list(list: &ToolList) -> f64 {
    let source = Arc::new(ListSource::new("bench", []));
    let catalogue = Catalogue::new();
    catalogue.add_source(source.clone());
    let spent = cpu::least(5, || {
        source.set(SourceState::Ready(ToolList::default()));
        assert!(catalogue.snapshot(&View::default()).is_empty());
        source.set(SourceState::Ready(list.clone()));
        let toolkit = Toolkit::everything(&catalogue.snapshot(&View::default()));
        assert_eq!(toolkit.model_list().tools().len(), TOOLS);
        black_box(toolkit.model_list().json());
    });
    spent.as_secs_f64() * 1e3
}

/// Measures the catalogue.
pub fn measure(report: &mut Report) {
    let plain = tools(|number| format!("tool_{number}"));
    let bare = cpu::least(5, || {
        let list: Vec<_> = plain.as_slice().iter().map(|tool| json!({"name": tool.spec().name(), "description": tool.spec().description(), "parameters": tool.spec().input().value()})).collect();
        black_box(serde_json::to_string(&list).expect("JSON"));
    });
    let baseline = ("serialising the list with serde_json", bare.as_secs_f64() * 1e3);
    report.row("10,000 tools: snapshot and model list", snapshot_and_list(&plain), "ms", baseline, Some(100.0));
    let dotted = tools(|number| format!("self.tool.{number}"));
    report.row(
        "10,000 tools whose names must be rewritten for models: snapshot and model list",
        snapshot_and_list(&dotted),
        "ms",
        ("", 0.0),
        Some(100.0),
    );
}
