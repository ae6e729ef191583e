//! Arguments are read, completed and checked before anything else happens, so that nobody is asked about nonsense.

use std::panic::AssertUnwindSafe;

use helve_core::json::{JsonLimits, measure};
use helve_core::{Redactor, ToolCall, ToolError};
use serde_json::json;

use crate::catalogue::Entry;
use crate::layers::catch::panicked;

/// Makes a call's arguments fit the tool's input schema and lets its author look at them, or says what is wrong with them.
pub(crate) fn validate(entry: &Entry, call: &mut ToolCall, redactor: &Redactor) -> Result<(), ToolError> {
    let too_much = |error| ToolError::invalid_parameters(format!("the arguments were not accepted: {error}"));
    measure(&call.arguments, JsonLimits::ARGUMENTS).map_err(too_much)?;
    let schema = entry.spec().input();
    schema.fit(&mut call.arguments).map_err(|problems| {
        // Problems quote the arguments in part, so they are told of arguments that hold no secret.
        let problems = if redactor.cleaned(&call.arguments) == call.arguments {
            problems
        } else {
            schema.fit(&mut redactor.cleaned(&call.arguments)).err().unwrap_or_default()
        };
        if problems.is_empty() {
            return ToolError::invalid_parameters("the arguments do not fit, and hold a secret that is not shown");
        }
        let listed: Vec<_> = problems.iter().map(ToString::to_string).collect();
        ToolError::invalid_parameters(listed.join("; ")).with("problems", json!(problems))
    })?;
    // Text that was read as JSON may have become more than arguments may be.
    measure(&call.arguments, JsonLimits::ARGUMENTS).map_err(too_much)?;
    // Nothing of the check is used after a panic, so broken invariants stay inside.
    let check = AssertUnwindSafe(|| entry.tool().validate(call));
    std::panic::catch_unwind(check).unwrap_or_else(|panic| Err(panicked("the tool", &*panic)))
}
