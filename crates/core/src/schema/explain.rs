//! What is wrong with a value, in words that a model can act on: where, what was expected, what came.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde::Serialize;
use serde_json::Value;

use crate::printable::{escape, shorten};
use crate::suggest;

/// More problems than this help nobody.
const MOST: usize = 8;
/// How much of a value is shown.
const SHOWN: usize = 60;

/// One thing that is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where, as a JSON pointer; `/` is the whole value.
    pub path: String,
    /// What would have been right.
    pub expected: String,
    /// What came.
    pub got: String,
    /// What was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// A schema that was sound when it was made no longer compiles; nothing fits it.
    pub(super) fn unusable() -> Self {
        Self { path: "/".into(), expected: "a value for a schema that can be used".into(), got: "a schema that cannot".into(), hint: None }
    }

    /// An argument that the schema does not know.
    pub(super) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Self {
        let names: Vec<_> = known.clone().take(20).map(|name| format!("`{name}`")).collect();
        let expected = if names.is_empty() { "no arguments".to_owned() } else { format!("only {}", names.join(", ")) };
        let hint = suggest::nearest(name, known).map(|near| format!("did you mean `{near}`?"));
        Self { path: pointer(&format!("/{}", shown_name(name))), expected, got: "an unknown argument".into(), hint }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.path, self.expected, self.got)?;
        self.hint.iter().try_for_each(|hint| write!(f, " ({hint})"))
    }
}

/// All problems of a value, as far as they are worth listing.
pub(super) fn problems(validator: &Validator, schema: &Value, value: &Value) -> Vec<Problem> {
    validator.iter_errors(value).take(MOST * 2).flat_map(|error| describe(&error, schema)).collect()
}

/// Drops repetition: the check for unknown arguments and the schema's own may say the same twice.
pub(super) fn most_useful(problems: Vec<Problem>) -> Vec<Problem> {
    let mut useful: Vec<Problem> = Vec::new();
    for problem in problems {
        let repeats = useful.iter().any(|known| known.path == problem.path && known.got == problem.got);
        if !repeats && useful.len() < MOST {
            useful.push(problem);
        }
    }
    useful
}

/// A JSON pointer for people: the whole document is `/`.
pub(super) fn pointer(path: &str) -> String {
    if path.is_empty() { "/".to_owned() } else { shorten(&escape(path), 200) }
}

fn describe(error: &ValidationError<'_>, schema: &Value) -> Vec<Problem> {
    let path = error.instance_path().as_str();
    let one = |expected: String| vec![Problem { path: pointer(path), expected, got: got(error.instance()), hint: None }];
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let expected = "a value for this required argument".to_owned();
            vec![Problem { path: pointer(&format!("{path}/{}", shown_name(name))), expected, got: "nothing".into(), hint: None }]
        }
        ValidationErrorKind::AdditionalProperties { unexpected } | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            // The keyword stands beside the fields that are known.
            let keyword = error.schema_path().as_str();
            let beside = keyword.rsplit_once('/').and_then(|(parent, _)| schema.pointer(&format!("{parent}/properties")));
            let known: Vec<&str> = beside.and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            unexpected
                .iter()
                .map(|name| Problem {
                    path: pointer(&format!("{path}/{}", shown_name(name))),
                    ..Problem::unknown(name, known.iter().copied())
                })
                .collect()
        }
        ValidationErrorKind::Type { kind } => one(match kind {
            TypeKind::Single(name) => name.to_string(),
            // That null would do as well helps nobody who sent a value.
            TypeKind::Multiple(names) => {
                names.iter().map(|name| name.to_string()).filter(|name| name != "null").collect::<Vec<_>>().join(" or ")
            }
        }),
        ValidationErrorKind::Enum { options } => {
            let options: Vec<_> = options.as_array().into_iter().flatten().collect();
            let listed: Vec<_> = options.iter().take(20).map(|option| shorten(&option.to_string(), SHOWN)).collect();
            let mut problem = one(format!("one of {}", listed.join(", ")));
            if let Some(text) = error.instance().as_str() {
                problem[0].hint = suggest::nearest(text, options.iter().filter_map(|option| option.as_str()))
                    .map(|near| format!("did you mean \"{near}\"?"));
            }
            problem
        }
        ValidationErrorKind::Constant { expected_value } => one(shorten(&expected_value.to_string(), SHOWN)),
        ValidationErrorKind::Minimum { limit } => one(format!("{limit} or more")),
        ValidationErrorKind::Maximum { limit } => one(format!("{limit} or less")),
        ValidationErrorKind::ExclusiveMinimum { limit } => one(format!("more than {limit}")),
        ValidationErrorKind::ExclusiveMaximum { limit } => one(format!("less than {limit}")),
        ValidationErrorKind::MultipleOf { multiple_of } => one(format!("a multiple of {multiple_of}")),
        ValidationErrorKind::MinLength { limit } => one(format!("at least {limit} characters")),
        ValidationErrorKind::MaxLength { limit } => one(format!("at most {limit} characters")),
        ValidationErrorKind::MinItems { limit } => one(format!("at least {limit} items")),
        ValidationErrorKind::MaxItems { limit } => one(format!("at most {limit} items")),
        ValidationErrorKind::UniqueItems => one("items that all differ".into()),
        ValidationErrorKind::Pattern { pattern } => one(format!("text that matches `{}`", shorten(pattern, SHOWN))),
        ValidationErrorKind::AnyOf { .. } => one("a value of one of the allowed forms".into()),
        ValidationErrorKind::OneOfNotValid { .. } | ValidationErrorKind::OneOfMultipleValid { .. } => {
            one("a value of exactly one of the allowed forms".into())
        }
        ValidationErrorKind::FalseSchema => one("nothing here".into()),
        other => one(format!("what `{}` asks for", other.keyword())),
    }
}

fn shown_name(name: &str) -> String {
    shorten(&name.replace('~', "~0").replace('/', "~1"), SHOWN)
}

/// A value in a few words: its type, and the value where it is short.
pub(super) fn got(value: &Value) -> String {
    let shown = || shorten(&escape(&value.to_string()), SHOWN);
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => format!("boolean {}", shown()),
        Value::Number(number) if number.is_f64() => format!("number {}", shown()),
        Value::Number(_) => format!("integer {}", shown()),
        Value::String(_) => format!("string {}", shown()),
        Value::Array(items) => format!("array of {} items", items.len()),
        Value::Object(fields) => format!("object with {} fields", fields.len()),
    }
}
