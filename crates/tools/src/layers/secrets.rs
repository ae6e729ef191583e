//! Rejects calls from the store whose secrets are missing, because the tool would get a placeholder.

use helve_core::{ErrorKind, InputResponse, Redactor, ToolCall, ToolError};
use serde_json::Value;

/// Rejects a call if its arguments or a person's input contain a placeholder whose secret is unknown.
pub(crate) fn check(call: &ToolCall, given: Option<&InputResponse>, redactor: &Redactor) -> Result<(), ToolError> {
    let answers = given.and_then(|given| given.answers.as_ref()).map(|answers| answers.values());
    let values = std::iter::once(&call.arguments).chain(given.map(|given| &given.state)).chain(answers.into_iter().flatten());
    match values.into_iter().find_map(|value: &Value| redactor.missing_secret(value)) {
        None => Ok(()),
        Some(source) => {
            let message = format!(
                "the call did not run: its arguments contain a secret ({source}) that this process does not have, or has with another \
                 value; set it to the original value and try again"
            );
            Err(ToolError::new(ErrorKind::Interrupted, message).with("secret", source.into()))
        }
    }
}
