//! Text with `{{ … }}`. The author of the tool writes it; the values come from a model or a server and are never parsed as templates.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Expression, UndefinedBehavior};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Maximum number of steps of a template: enough for a list of a few thousand entries.
const FUEL: u64 = 200_000;
/// Maximum length of the result.
const MAX_OUTPUT: usize = 16 << 20;
/// Filters that can produce text of any length.
const UNBOUNDED: [&str; 2] = ["format", "indent"];
/// Everything that is percent-encoded in a path or query.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

static PLAIN: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Encoding::Plain));
static PATH: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Encoding::Path));
static QUERY: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Encoding::Query));
static PROBE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment(Encoding::Plain);
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment
});

/// How values are encoded in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As they are; anything but a string as JSON.
    Plain,
    /// As part of a path: percent-encoded, never empty.
    Path,
    /// As part of a query: percent-encoded.
    Query,
}

/// The variables of a template.
pub(crate) struct Variables(minijinja::Value);

impl Variables {
    pub(crate) fn new(fields: &Value) -> Self {
        Self(minijinja::Value::from(Serde(fields)))
    }
}

/// A text that may contain templates.
#[derive(Clone)]
pub(crate) struct Template(TemplateKind);

#[derive(Clone)]
enum TemplateKind {
    /// A text without templates.
    Literal(Arc<str>),
    /// A single expression, which keeps its type.
    Value(Arc<Expression<'static, 'static>>),
    /// Text with values in it. Compiled on each use, which is cheap compared to an HTTP request.
    Text(Arc<str>, Encoding),
}

/// Why a template could not be filled in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// A variable is missing.
    Missing,
    /// Anything else.
    Other(String),
}

impl Template {
    /// Reads a template; a single expression keeps its type.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if !has_template(text) {
            return Ok(Self(TemplateKind::Literal(text.into())));
        }
        let inside = trimmed.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        let compiled = inside.and_then(|inside| PLAIN.compile_expression_owned(inside.trim().to_owned()).ok());
        probe(text)?;
        match compiled {
            Some(expression) => Ok(Self(TemplateKind::Value(Arc::new(expression)))),
            None => Self::text(text, Encoding::Plain),
        }
    }

    /// Reads a template that produces text.
    pub(crate) fn text(text: &str, encoding: Encoding) -> Result<Self, String> {
        if !has_template(text) {
            return Ok(Self(TemplateKind::Literal(text.into())));
        }
        encoding.environment().template_from_named_str("template", text).map_err(|error| explain(&error))?;
        probe(text)?;
        Ok(Self(TemplateKind::Text(text.into(), encoding)))
    }

    /// The variables in it.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let names = match &self.0 {
            TemplateKind::Literal(_) => return BTreeSet::new(),
            TemplateKind::Value(expression) => expression.undeclared_variables(false),
            TemplateKind::Text(text, encoding) => match encoding.environment().template_from_named_str("template", text) {
                Ok(template) => template.undeclared_variables(false),
                Err(_) => return BTreeSet::new(),
            },
        };
        names.into_iter().collect()
    }

    /// Returns whether there is nothing to fill in.
    pub(crate) fn is_literal(&self) -> bool {
        matches!(self.0, TemplateKind::Literal(_))
    }

    /// The result. Returns `None` if it is a single expression with a missing variable.
    pub(crate) fn value(&self, variables: &Variables) -> Result<Option<Value>, TemplateError> {
        match &self.0 {
            TemplateKind::Literal(text) => Ok(Some(Value::from(&**text))),
            TemplateKind::Text(..) => self.written(variables).map(|text| Some(Value::from(text))),
            TemplateKind::Value(expression) => match expression.eval(variables.0.clone()) {
                Ok(value) if value.is_undefined() => Ok(None),
                Ok(value) => serde_json::to_value(&value).map(Some).map_err(|error| TemplateError::Other(error.to_string())),
                Err(error) if error.kind() == ErrorKind::UndefinedError => Ok(None),
                Err(error) => Err(TemplateError::Other(explain(&error))),
            },
        }
    }

    /// Like [`value`](Self::value), but as text.
    pub(crate) fn value_text(&self, variables: &Variables) -> Result<Option<String>, TemplateError> {
        Ok(self.value(variables)?.map(|value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        }))
    }

    /// The result as text.
    pub(crate) fn written(&self, variables: &Variables) -> Result<String, TemplateError> {
        match &self.0 {
            TemplateKind::Text(text, encoding) => {
                render(encoding.environment(), text, variables.0.clone()).map_err(|error| match error.kind() {
                    ErrorKind::UndefinedError => TemplateError::Missing,
                    _ => TemplateError::Other(explain(&error)),
                })
            }
            _ => self.value_text(variables)?.ok_or(TemplateError::Missing),
        }
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A template may contain a secret from the environment.
        f.write_str("Template")
    }
}

/// Renders a template once without variables, because filters and tests are resolved only then.
fn probe(text: &str) -> Result<(), String> {
    use ErrorKind::{UnknownFilter, UnknownTest};
    check_blocks(text)?;
    match render(&PROBE, text, minijinja::Value::from(())) {
        Err(error) if matches!(error.kind(), UnknownFilter | UnknownTest) => Err(explain(&error)),
        _ => Ok(()),
    }
}

/// Renders a template into a buffer of limited size.
fn render(environment: &Environment<'static>, text: &str, variables: minijinja::Value) -> Result<String, Error> {
    let mut output = BoundedBuffer(Vec::new());
    environment.template_from_named_str("template", text)?.render_captured_to(variables, &mut output)?;
    String::from_utf8(output.0).map_err(|_| Error::new(ErrorKind::InvalidOperation, "the result is not text"))
}

struct BoundedBuffer(Vec<u8>);

impl std::io::Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
            return Err(std::io::Error::other("the result is too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Rejects what could build a text of any size in memory: steps are limited, memory is not.
fn check_blocks(text: &str) -> Result<(), String> {
    for block in text.split("{%").skip(1) {
        let word = block.trim_start_matches(['-', '+']).split_whitespace().next().unwrap_or_default();
        if !["if", "elif", "else", "endif", "for", "endfor"].contains(&word.trim_end_matches(['-', '+', '%', '}'])) {
            return Err(format!("`{{% {word} %}}` is not supported; `if` and `for` are"));
        }
    }
    if text.contains("indent") {
        return Err("`indent` is not supported".to_owned());
    }
    Ok(())
}

/// Returns whether a text contains a template.
pub(crate) fn has_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

impl Encoding {
    fn environment(self) -> &'static Environment<'static> {
        match self {
            Self::Plain => &PLAIN,
            Self::Path => &PATH,
            Self::Query => &QUERY,
        }
    }

    fn write(self, value: &minijinja::Value) -> Result<String, Error> {
        let refused = |why: &'static str| Error::new(ErrorKind::InvalidOperation, why);
        let text = match value.as_str() {
            Some(text) => text.to_owned(),
            None if self != Self::Plain && !matches!(value.kind(), ValueKind::Number | ValueKind::Bool) => {
                return Err(refused("a URL can only contain strings, numbers and booleans"));
            }
            None => serde_json::to_string(value).map_err(|_| refused("the value cannot be written as JSON"))?,
        };
        match self {
            Self::Plain => Ok(text),
            Self::Path if text.is_empty() => Err(refused("a path segment cannot be empty")),
            Self::Path | Self::Query => Ok(utf8_percent_encode(&text, RESERVED).to_string()),
        }
    }
}

fn environment(encoding: Encoding) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    for filter in UNBOUNDED {
        environment.remove_filter(filter);
    }
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_formatter(move |out, _, value| out.write_str(&encoding.write(value)?).map_err(Error::from));
    // A parameter may be named `range`; if it is omitted, it must not become the function.
    let globals: Vec<String> = environment.globals().map(|(name, _)| name.to_owned()).collect();
    for name in globals {
        environment.remove_global(&name);
    }
    environment
}

/// The reason of an error, without the library's prefix.
fn explain(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests;
