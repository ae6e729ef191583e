//! Validates results against the output schema of the tool.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynLayer, ErrorKind, Next, Output, Redactor, Schema, ToolCall, ToolError};
use serde_json::json;

use crate::catalogue::Entry;

/// Turns results that violate the output schema into `invalid_output`.
pub(crate) struct CheckOutput {
    schema: Schema,
    redactor: Redactor,
}

impl CheckOutput {
    pub(crate) fn layer(entry: &Entry, redactor: &Redactor) -> Option<Arc<dyn DynLayer>> {
        let schema = entry.spec().output()?.clone();
        Some(Arc::new(Self { schema, redactor: redactor.clone() }))
    }
}

impl DynLayer for CheckOutput {
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext, next: Next<'a>) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let output = next.run(call, cx).await?;
            // Programs read a result without data as a string.
            let text = if output.data.is_null() { Some(json!(output.text)) } else { None };
            if self.schema.is_valid(&output.data) || text.as_ref().is_some_and(|text| self.schema.is_valid(text)) {
                return Ok(output);
            }
            let data = text.as_ref().unwrap_or(&output.data);
            // Problems quote parts of the result, so compute them on a redacted copy.
            let problems = self.schema.problems(&self.redactor.cleaned(data));
            if problems.is_empty() {
                let message = "the tool's result does not match its own schema; details are hidden because it contains a secret";
                return Err(ToolError::new(ErrorKind::InvalidOutput, message));
            }
            let listed: Vec<_> = problems.iter().map(ToString::to_string).collect();
            let message = format!("the tool's result does not match its own schema: {}", listed.join("; "));
            Err(ToolError::new(ErrorKind::InvalidOutput, message).with("problems", json!(problems)))
        })
    }
}
