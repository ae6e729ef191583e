//! Refuses calls from the store whose secrets are missing: the tool would get a placeholder.

use helve_core::{ErrorKind, InputResponse, Redactor, ToolCall, ToolError};
use serde_json::Value;

/// Refuses a call with a placeholder that could not be filled in, in its arguments or in a person's input.
pub(crate) fn check(call: &ToolCall, given: Option<&InputResponse>, redactor: &Redactor) -> Result<(), ToolError> {
    let answers = given.and_then(|given| given.answers.as_ref()).map(|answers| answers.values());
    let values = std::iter::once(&call.arguments).chain(given.map(|given| &given.state)).chain(answers.into_iter().flatten());
    match values.into_iter().find_map(|value: &Value| redactor.missing_secret(value)) {
        None => Ok(()),
        Some(source) => {
            let message = format!(
                "the call was not made: its arguments contain a secret ({source}) that is not stored, and that is not set here or has \
                 another value; set it to the original value and try again"
            );
            Err(ToolError::new(ErrorKind::Interrupted, message).with("secret", source.into()))
        }
    }
}
