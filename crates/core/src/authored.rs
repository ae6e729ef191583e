//! Fields that all kinds of tool files share: parameters, rules, secrets, selection. Also the error that locates a mistake in a file.

mod parameters;
mod rules_fields;
mod secret;
mod selection;

use serde_json::Value;

pub use self::parameters::{Parameter, parameters_schema, read_parameters};
pub use self::rules_fields::{CacheField, HumanDuration, RulesFields};
pub use self::secret::Secret;
pub use self::selection::SelectionFields;
use crate::schema::Schema;
use crate::spec::ToolSpec;

/// A mistake in a field of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FieldError {
    /// The field, as a JSON pointer into the file.
    pub path: String,
    /// What is wrong with the field.
    pub message: String,
    /// How to fix the mistake.
    pub hint: Option<String>,
}

impl FieldError {
    /// Creates an error for a field, without a hint.
    #[must_use]
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), hint: None }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Creates the spec of a tool from the fields `name`, `title`, `description`, `parameters` and `output` of a file.
///
/// # Errors
/// If a field is invalid. The error names the first invalid field.
pub fn read_spec(
    name: &str,
    title: Option<&str>,
    description: &str,
    parameters: Option<&Value>,
    output: Option<&Value>,
) -> Result<ToolSpec, FieldError> {
    let mut spec = ToolSpec::new(name, description, read_parameters(parameters, "/parameters")?)?;
    if let Some(title) = title {
        spec = spec.with_title(title);
    }
    if let Some(output) = output {
        spec = spec.with_output(Schema::new(output.clone()).map_err(|error| FieldError::new("/output", error.to_string()))?);
    }
    Ok(spec)
}

impl From<crate::spec::SpecError> for FieldError {
    fn from(error: crate::spec::SpecError) -> Self {
        use crate::spec::SpecError;
        let path = match &error {
            SpecError::Name { .. } | SpecError::Duplicate { .. } => "/name",
            SpecError::Description { .. } => "/description",
            SpecError::Schema { part: "output", .. } => "/output",
            SpecError::Schema { .. } | SpecError::NotAnObject { .. } => "/parameters",
        };
        Self::new(path, error.to_string())
    }
}
