//! A call from the store whose secrets are not there is not made: its tool would get a placeholder.

use helve_core::{ErrorKind, InputResponse, Redactor, ToolCall, ToolError};
use serde_json::Value;

/// Refuses a call with a placeholder that could not be filled in, in its arguments or in what a person answered.
pub(crate) fn check(call: &ToolCall, given: Option<&InputResponse>, redactor: &Redactor) -> Result<(), ToolError> {
    let answers = given.and_then(|given| given.answers.as_ref()).map(|answers| answers.values());
    let values = std::iter::once(&call.arguments).chain(given.map(|given| &given.state)).chain(answers.into_iter().flatten());
    match values.into_iter().find_map(|value: &Value| redactor.missing_secret(value)) {
        None => Ok(()),
        Some(source) => {
            let message = format!(
                "the call was not made: its arguments contain a secret ({source}) that is not stored, and here it is not set or has another \
                 value; set it as it was and try again"
            );
            Err(ToolError::new(ErrorKind::Interrupted, message).with("secret", source.into()))
        }
    }
}
