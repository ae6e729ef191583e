//! Arguments are read, completed and checked before anything else happens, so that nobody is asked about nonsense.

use helve_core::json::{Limits, measure};
use helve_core::{ToolCall, ToolError};
use serde_json::json;

use crate::catalogue::Entry;

/// Makes a call's arguments fit the tool's input schema, or says what is wrong with them.
pub(crate) fn validate(entry: &Entry, call: &mut ToolCall) -> Result<(), ToolError> {
    if let Err(error) = measure(&call.arguments, Limits::ARGUMENTS) {
        return Err(ToolError::invalid_parameters(format!("the arguments were not accepted: {error}")));
    }
    entry.spec().input().fit(&mut call.arguments).map_err(|problems| {
        let listed: Vec<_> = problems.iter().map(ToString::to_string).collect();
        ToolError::invalid_parameters(listed.join("; ")).with("problems", json!(problems))
    })
}
