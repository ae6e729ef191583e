//! JSON Schemas: checked when created, compiled when first used, and shared.
//!
//! A schema may be untrusted. Its size, depth and work are limited, its patterns run in linear time, and it cannot refer to other
//! documents, so no schema can make Helve read a file or a URL.

mod check;
mod coerce;
mod explain;
mod form;

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use schemars::JsonSchema;
use serde_json::{Value, json};

use self::coerce::Shape;
pub use self::explain::Problem;
use crate::json::{JsonError, canonical};

/// The type names of JSON Schema.
const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];
/// Maximum memory of one compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 18;

/// A valid JSON Schema (2020-12, unless `$schema` says otherwise).
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    value: Value,
    /// The schema as its author wrote it, with the keys in their original order. Models read this text.
    text: String,
    /// The schema with sorted keys, for comparing and hashing.
    canonical: String,
    compiled: OnceLock<CompiledSchema>,
}

struct CompiledSchema {
    validator: Option<Validator>,
    shape: Shape,
}

/// Why a schema is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema exceeds the size limits.
    #[error(transparent)]
    Size(#[from] JsonError),
    /// A reference in the schema leads outside the schema.
    #[error("the reference to `{target}` at {at} leaves the schema; use a reference that starts with `#`")]
    OutsideReference {
        /// The location of the reference, as a JSON pointer.
        at: String,
        /// The target of the reference.
        target: String,
    },
    /// A reference cycle that validation would never leave.
    #[error("the reference at {at} leads back to itself")]
    EndlessReference {
        /// The location of the reference, as a JSON pointer.
        at: String,
    },
    /// Validation against the schema would take too long.
    #[error("the schema has more than {limit} combinations of alternatives")]
    TooComplex {
        /// The maximum number of combinations.
        limit: u64,
    },
    /// The schema is not a JSON Schema, or one of its patterns cannot run in linear time.
    #[error("at {at}: {message}")]
    Invalid {
        /// The location of the mistake, as a JSON pointer.
        at: String,
        /// What is wrong with the schema.
        message: String,
    },
}

impl Schema {
    /// Creates a schema from JSON, after checking it.
    ///
    /// # Errors
    /// If the schema is not valid. The error contains the location.
    pub fn new(value: Value) -> Result<Self, SchemaError> {
        check::check(&value)?;
        compile(&value).map_err(|error| {
            let at = explain::pointer(error.instance_path().as_str());
            // A wrong `type` is the most frequent mistake, so its message is better than that of the meta-schema.
            let message = match error.instance().as_str().filter(|_| at.ends_with("/type")) {
                Some(name) => {
                    format!("there is no type `{}`{}", crate::printable::escape_line(name), crate::suggest::did_you_mean(name, TYPES))
                }
                None => error.to_string(),
            };
            SchemaError::Invalid { at, message }
        })?;
        Ok(Self::trusted(value))
    }

    /// Generates the schema of a Rust type.
    #[must_use]
    pub fn of<T: JsonSchema>() -> Self {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
        if let Some(root) = value.as_object_mut() {
            root.remove("title");
            // Some providers require `properties` even if it is empty.
            if root.get("type").is_some_and(|kind| kind == "object") {
                root.entry("properties").or_insert_with(|| json!({}));
            }
        }
        plain_numbers(&mut value);
        Self::trusted(value)
    }

    /// Returns the schema of an object with any fields.
    #[must_use]
    pub fn any_object() -> Self {
        static ANY: LazyLock<Schema> = LazyLock::new(|| Schema::trusted(json!({"type": "object", "additionalProperties": true})));
        ANY.clone()
    }

    /// Creates a schema that is known to be valid.
    pub(crate) fn trusted(value: Value) -> Self {
        let (text, canonical) = (value.to_string(), canonical(&value));
        Self(Arc::new(Inner { value, text, canonical, compiled: OnceLock::new() }))
    }

    /// Returns the schema as a JSON value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Returns the schema as JSON text, as its author wrote it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the schema as canonical JSON text.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.0.canonical
    }

    /// Returns whether the schema describes an object, as the arguments of a call must be.
    #[must_use]
    pub fn describes_object(&self) -> bool {
        match self.0.value.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(_) => false,
            None => self.0.value.is_object(),
        }
    }

    /// Returns whether a value matches the schema.
    #[must_use]
    pub fn is_valid(&self, value: &Value) -> bool {
        self.compiled().validator.as_ref().is_some_and(|validator| validator.is_valid(value))
    }

    /// Returns the problems of a value; empty if the value matches the schema.
    #[must_use]
    pub fn problems(&self, value: &Value) -> Vec<Problem> {
        match &self.compiled().validator {
            Some(validator) if validator.is_valid(value) => Vec::new(),
            Some(_) => explain::problems(self.value(), None, value, false),
            None => vec![Problem::unusable()],
        }
    }

    /// Returns the problems of arguments, including unknown arguments. Unlike [`Schema::fit`], this does not change the arguments.
    #[must_use]
    pub fn check(&self, value: &Value) -> Vec<Problem> {
        let compiled = self.compiled();
        let Some(validator) = &compiled.validator else { return vec![Problem::unusable()] };
        explain::problems(self.value(), compiled.shape.known(), value, validator.is_valid(value))
    }

    /// Coerces arguments if only one conversion is possible, fills in defaults, and rejects unknown arguments.
    ///
    /// Valid arguments do not change, except that missing ones get their defaults and whole floats become integers where required.
    ///
    /// # Errors
    /// The remaining problems, at most as many as are useful to a model.
    pub fn fit(&self, arguments: &mut Value) -> Result<(), Vec<Problem>> {
        let compiled = self.compiled();
        let Some(validator) = &compiled.validator else { return Err(vec![Problem::unusable()]) };
        let shape = &compiled.shape;
        let fits = validator.is_valid(arguments);
        if fits && !shape.has_unknown(arguments) && !shape.wants_more(arguments) {
            return Ok(());
        }
        if !fits {
            coerce::coerce(self.value(), arguments);
        }
        coerce::complete(self.value(), arguments);
        let problems = explain::problems(self.value(), shape.known(), arguments, validator.is_valid(arguments));
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn compiled(&self) -> &CompiledSchema {
        self.0.compiled.get_or_init(|| CompiledSchema { validator: compile(&self.0.value).ok(), shape: Shape::of(&self.0.value) })
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.canonical == other.0.canonical
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.0.value)
    }
}

fn compile(schema: &Value) -> Result<Validator, jsonschema::ValidationError<'static>> {
    static OPTIONS: LazyLock<ValidationOptions<'static>> = LazyLock::new(|| {
        let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
        jsonschema::options().with_pattern_options(patterns).offline()
    });
    // `$schema` names the draft; without it the current draft applies.
    if schema.get("$schema").is_some() { OPTIONS.build(schema) } else { OPTIONS.clone().with_draft(Draft::Draft202012).build(schema) }
}

/// Removes `format: "int64"` and similar, which the bounds already express, because models read every word of a schema.
fn plain_numbers(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_number = fields.get("type").is_some_and(|kind| {
                let numeric = |name: &Value| matches!(name.as_str(), Some("integer" | "number"));
                numeric(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(numeric))
            });
            if is_number {
                fields.remove("format");
            }
            fields.values_mut().for_each(plain_numbers);
        }
        Value::Array(items) => items.iter_mut().for_each(plain_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
