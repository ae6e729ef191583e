//! Validates arguments before a person is asked for approval: coerces them, fills in defaults, and checks them.

use std::panic::AssertUnwindSafe;

use helve_core::json::{JsonLimits, measure};
use helve_core::{Redactor, ToolCall, ToolError};
use serde_json::json;

use crate::catalogue::Entry;
use crate::layers::catch::panicked;

/// Fits the arguments of a call to the tool's input schema, and runs the tool's own validation.
pub(crate) fn validate(entry: &Entry, call: &mut ToolCall, redactor: &Redactor) -> Result<(), ToolError> {
    let too_much = |error| ToolError::invalid_parameters(format!("the arguments were not accepted: {error}"));
    measure(&call.arguments, JsonLimits::ARGUMENTS).map_err(too_much)?;
    let schema = entry.spec().input();
    schema.fit(&mut call.arguments).map_err(|problems| {
        // Problems quote parts of the arguments, so compute them on a redacted copy.
        let problems = if redactor.cleaned(&call.arguments) == call.arguments {
            problems
        } else {
            schema.fit(&mut redactor.cleaned(&call.arguments)).err().unwrap_or_default()
        };
        if problems.is_empty() {
            return ToolError::invalid_parameters("the arguments do not match the schema; details contain a secret and are hidden");
        }
        let listed: Vec<_> = problems.iter().map(ToString::to_string).collect();
        ToolError::invalid_parameters(listed.join("; ")).with("problems", json!(problems))
    })?;
    // Strings that were parsed as JSON may have made the arguments exceed the limits.
    measure(&call.arguments, JsonLimits::ARGUMENTS).map_err(too_much)?;
    // The data of the check is not used after a panic, so broken invariants cannot spread.
    let check = AssertUnwindSafe(|| entry.tool().validate(call));
    std::panic::catch_unwind(check).unwrap_or_else(|panic| Err(panicked("the tool", &*panic)))
}
