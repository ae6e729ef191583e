//! Support for functions as tools, for the code that `#[tool]` generates.
//!
//! Functions register themselves at link time. No agent uses them until a program adds the tools that [`linked`] returns.

#[doc(hidden)]
pub mod returned;

use std::any::Any;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::ToolCall;
use crate::error::ToolError;
use crate::outcome::{Output, not_json};
use crate::schema::Schema;
use crate::spec::ToolSpec;
use crate::tool::DynTool;

/// A function that registered itself at link time.
#[derive(Debug)]
pub struct LinkedTool {
    /// Creates the tool.
    pub tool: fn() -> Arc<dyn DynTool>,
    /// The path of the module that contains the function.
    pub module: &'static str,
}

inventory::collect!(LinkedTool);

/// Returns all `#[tool]` functions of this program in `module` and its submodules (`""` for all modules), sorted by name.
#[must_use]
pub fn linked(module: &str) -> Vec<Arc<dyn DynTool>> {
    let within =
        |found: &str| found.strip_prefix(module).is_some_and(|rest| module.is_empty() || rest.is_empty() || rest.starts_with("::"));
    let mut tools: Vec<_> =
        inventory::iter::<LinkedTool>.into_iter().filter(|linked| within(linked.module)).map(|linked| (linked.tool)()).collect();
    tools.sort_by(|a, b| a.spec().name().cmp(b.spec().name()));
    tools
}

/// A type that a tool function can return: a type that can be serialised, or [`Output`].
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "cannot be serialised",
    note = "return a `String`, an `Output`, anything that implements `serde::Serialize`, or a `Result` of these",
    note = "for your own type, add `#[derive(serde::Serialize)]`"
)]
pub trait IntoOutput {
    /// Converts the value into an output.
    ///
    /// # Errors
    /// `failed` if the value cannot be serialised as JSON.
    fn into_output(self) -> Result<Output, ToolError>;
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(self)
    }
}

impl<T: Serialize + 'static> IntoOutput for T {
    fn into_output(self) -> Result<Output, ToolError> {
        // Moves a `String` instead of serialising and copying it.
        let mut slot = Some(self);
        if let Some(text) = (&mut slot as &mut dyn Any).downcast_mut::<Option<String>>() {
            return Ok(Output::text(text.take().unwrap_or_default()));
        }
        serde_json::to_value(slot).map(Output::data).map_err(not_json)
    }
}

/// Converts a value with a declared schema into an output. A string becomes text and data, so that the data can be validated.
///
/// # Errors
/// `failed` if the value cannot be serialised as JSON.
#[doc(hidden)]
pub fn described<T: Serialize>(value: T) -> Result<Output, ToolError> {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => Ok(Output::text(text.clone()).with_data(Value::String(text))),
        Ok(data) => Ok(Output::data(data)),
        Err(error) => Err(not_json(error)),
    }
}

/// Deserialises the arguments of a call.
///
/// # Errors
/// `invalid_parameters` if the type accepts fewer values than its schema.
pub fn arguments<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ToolError> {
    T::deserialize(&call.arguments).map_err(|error| ToolError::invalid_parameters(error.to_string()))
}

/// Turns an error of kind `failed` from a function that validates arguments into `invalid_parameters`.
///
/// # Errors
/// `invalid_parameters`, or the kind of error that the function chose.
#[doc(hidden)]
pub fn checked(result: Result<(), ToolError>) -> Result<(), ToolError> {
    result.map_err(ToolError::about_arguments)
}

/// A type that a parameter of a tool function can have: it can be deserialised and has a schema.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a tool cannot take `{Self}` as an argument",
    label = "cannot be deserialised, or has no schema",
    note = "an argument implements `serde::Deserialize` and `schemars::JsonSchema`",
    note = "for your own type, add `#[derive(serde::Deserialize, schemars::JsonSchema)]`"
)]
pub trait Argument: DeserializeOwned + JsonSchema {}

impl<T: DeserializeOwned + JsonSchema> Argument for T {}

/// Reports a parameter type that does not implement [`Argument`] before the compiler reports errors in derived code.
#[doc(hidden)]
pub fn argument<T: Argument>() {}

/// Requires that a default value can be serialised, because the model reads it in the schema.
#[doc(hidden)]
pub fn default_value<T: Serialize>(value: T) -> T {
    value
}

/// Runs a blocking function on a thread pool. A panic propagates to the caller.
///
/// # Errors
/// Returns the error of the function, or `cancelled` if the runtime shuts down.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, ToolError> + Send + 'static) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ToolError::cancelled()),
        },
    }
}

/// Returns the input schema of an argument type. A type for any JSON, such as `Value`, accepts any object.
#[doc(hidden)]
#[must_use]
pub fn input<T: JsonSchema>() -> Schema {
    let input = Schema::of::<T>();
    let takes_anything = input.value().as_object().map_or(*input.value() == Value::Bool(true), serde_json::Map::is_empty);
    if takes_anything { Schema::any_object() } else { input }
}

/// Creates the spec of a function. `#[tool]` has already checked the name and the description.
///
/// # Panics
/// If the type of a `#[flatten]` parameter is not a struct, which the macro cannot check.
#[doc(hidden)]
#[must_use]
#[expect(clippy::panic, reason = "the author must notice a tool that can never be called")]
pub fn spec(name: &'static str, description: &'static str, input: Schema) -> ToolSpec {
    match ToolSpec::new(name, description, input) {
        Ok(spec) => spec,
        Err(error) => panic!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn results_become_text_and_data() {
        let output = |value: &dyn Fn() -> Result<Output, ToolError>| value().expect("an output");
        assert_eq!(output(&|| "hi".to_owned().into_output()), Output::text("hi"));
        assert_eq!(output(&|| "hi".into_output()), Output::text("hi"));
        assert_eq!(output(&|| 5.into_output()), Output::text("5").with_data(json!(5)));
        assert_eq!(output(&|| ().into_output()), Output::text(""));
        assert_eq!(output(&|| Output::text("x").into_output()), Output::text("x"));
        let bad = std::collections::HashMap::from([((1, 2), 3)]).into_output();
        assert_eq!(bad.expect_err("keys must be strings").kind(), ErrorKind::Failed);
    }
}
