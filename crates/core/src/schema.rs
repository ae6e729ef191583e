//! JSON Schema: checked when it is created, compiled when it is first used, shared afterwards.
//!
//! A schema may be untrusted. It is limited in size, depth and work, its patterns run in linear time, and it refers to nothing outside
//! itself, so no schema can make Helve read a file or a URL.

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

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];
/// Maximum memory of one compiled pattern.
const PATTERN_BYTES: usize = 1 << 18;

/// A valid JSON Schema (2020-12, unless `$schema` says otherwise).
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    value: Value,
    /// As it was written, keys in their order: what models read.
    text: String,
    /// With sorted keys, for comparing and hashing.
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
    /// It is too large.
    #[error(transparent)]
    Size(#[from] JsonError),
    /// It refers to something outside itself.
    #[error("`$ref` to `{target}` at {at} leaves the document; only references that start with `#` are followed")]
    OutsideReference {
        /// Where, as a JSON pointer.
        at: String,
        /// The target.
        target: String,
    },
    /// A reference cycle that consumes nothing of the value.
    #[error("the reference at {at} leads back to itself")]
    EndlessReference {
        /// Where, as a JSON pointer.
        at: String,
    },
    /// Validation would take too long.
    #[error("the schema has more than {limit} combinations of alternatives")]
    TooComplex {
        /// The limit.
        limit: u64,
    },
    /// It is not a JSON Schema, or one of its patterns cannot run in linear time.
    #[error("at {at}: {message}")]
    Invalid {
        /// Where, as a JSON pointer.
        at: String,
        /// What is wrong.
        message: String,
    },
}

impl Schema {
    /// Checks a schema.
    ///
    /// # Errors
    /// If the schema is not valid. The error says where.
    pub fn new(value: Value) -> Result<Self, SchemaError> {
        check::check(&value)?;
        compile(&value).map_err(|error| {
            let at = explain::pointer(error.instance_path().as_str());
            // The most frequent mistake deserves a better message than that of the meta-schema.
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

    /// The schema of a Rust type.
    #[must_use]
    pub fn of<T: JsonSchema>() -> Self {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
        if let Some(root) = value.as_object_mut() {
            root.remove("title");
            // Some providers require it even if it is empty.
            if root.get("type").is_some_and(|kind| kind == "object") {
                root.entry("properties").or_insert_with(|| json!({}));
            }
        }
        plain_numbers(&mut value);
        Self::trusted(value)
    }

    /// The schema of an object with any fields.
    #[must_use]
    pub fn any_object() -> Self {
        static ANY: LazyLock<Schema> = LazyLock::new(|| Schema::trusted(json!({"type": "object", "additionalProperties": true})));
        ANY.clone()
    }

    /// A schema that is known to be valid.
    pub(crate) fn trusted(value: Value) -> Self {
        let (text, canonical) = (value.to_string(), canonical(&value));
        Self(Arc::new(Inner { value, text, canonical, compiled: OnceLock::new() }))
    }

    /// The schema as a value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The schema as JSON text, as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The schema as canonical JSON text.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.0.canonical
    }

    /// Whether it can describe the arguments of a call.
    #[must_use]
    pub fn describes_object(&self) -> bool {
        match self.0.value.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(_) => false,
            None => self.0.value.is_object(),
        }
    }

    /// Whether a value is valid.
    #[must_use]
    pub fn is_valid(&self, value: &Value) -> bool {
        self.compiled().validator.as_ref().is_some_and(|validator| validator.is_valid(value))
    }

    /// The problems of a value; empty if it is valid.
    #[must_use]
    pub fn problems(&self, value: &Value) -> Vec<Problem> {
        match &self.compiled().validator {
            Some(validator) if validator.is_valid(value) => Vec::new(),
            Some(_) => explain::problems(self.value(), None, value, false),
            None => vec![Problem::unusable()],
        }
    }

    /// The problems of arguments, unknown ones included. Like [`Schema::fit`], but without changing them.
    #[must_use]
    pub fn check(&self, value: &Value) -> Vec<Problem> {
        let compiled = self.compiled();
        let Some(validator) = &compiled.validator else { return vec![Problem::unusable()] };
        explain::problems(self.value(), compiled.shape.known(), value, validator.is_valid(value))
    }

    /// Coerces arguments if there is exactly one way to do so, fills in defaults, and rejects unknown arguments.
    ///
    /// Valid arguments are never changed, except for added defaults.
    ///
    /// # Errors
    /// The remaining problems, up to a number that helps a model.
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

/// Removes `format: "int64"` and the like: bounds say it already, and models read every word.
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
