//! Templates: text that contains `{{ … }}`. The author of the tool writes templates. Values come from a model or a server, and are never
//! parsed as templates.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Expression, UndefinedBehavior};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Maximum number of steps for rendering a template, which is enough for a list of a few thousand entries.
const FUEL: u64 = 200_000;
/// Maximum length of a rendered template, in bytes.
const MAX_OUTPUT: usize = 16 << 20;
/// Filters that are removed because they can produce text of any length.
const UNBOUNDED: [&str; 2] = ["format", "indent"];
/// Characters that are percent-encoded in a path or query.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

static PLAIN: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Encoding::Plain));
static PATH: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Encoding::Path));
static QUERY: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Encoding::Query));
static PROBE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment(Encoding::Plain);
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment
});

/// How values are encoded in a rendered template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Strings are unchanged; all other values are JSON.
    Plain,
    /// Values are percent-encoded for a path. They must not be empty.
    Path,
    /// Values are percent-encoded for a query.
    Query,
}

/// The values of the variables in templates.
pub(crate) struct Variables(minijinja::Value);

impl Variables {
    pub(crate) fn new(fields: &Value) -> Self {
        Self(minijinja::Value::from(Serde(fields)))
    }
}

/// A parsed text that may contain templates.
#[derive(Clone)]
pub(crate) struct Template(TemplateKind);

#[derive(Clone)]
enum TemplateKind {
    /// A text without templates.
    Literal(Arc<str>),
    /// A single expression, whose value keeps its type.
    Value(Arc<Expression<'static, 'static>>),
    /// Text that contains expressions. It is compiled on each use, which is cheap compared to an HTTP request.
    Text(Arc<str>, Encoding),
}

/// Why a template could not be rendered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// A variable is missing.
    Missing,
    /// Another error, with its message.
    Other(String),
}

impl Template {
    /// Parses a template. If the template is a single expression, its value keeps its type.
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

    /// Parses a template that always produces text, with values in the given encoding.
    pub(crate) fn text(text: &str, encoding: Encoding) -> Result<Self, String> {
        if !has_template(text) {
            return Ok(Self(TemplateKind::Literal(text.into())));
        }
        encoding.environment().template_from_named_str("template", text).map_err(|error| explain(&error))?;
        probe(text)?;
        Ok(Self(TemplateKind::Text(text.into(), encoding)))
    }

    /// Returns the names of the variables in the template.
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

    /// Returns whether the text contains no template.
    pub(crate) fn is_literal(&self) -> bool {
        matches!(self.0, TemplateKind::Literal(_))
    }

    /// Renders the template. Returns `None` if the template is a single expression with a missing variable.
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

    /// Renders the template like [`value`](Self::value), and converts the result to text.
    pub(crate) fn value_text(&self, variables: &Variables) -> Result<Option<String>, TemplateError> {
        Ok(self.value(variables)?.map(|value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        }))
    }

    /// Renders the template as text. Fails if a variable is missing.
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

/// Checks a template by rendering it without variables, because unknown filters and tests are only detected during rendering.
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

/// Rejects blocks and filters that could build a text of any size in memory. Only the number of steps is limited, not the memory.
fn check_blocks(text: &str) -> Result<(), String> {
    for block in text.split("{%").skip(1) {
        let word = block.trim_start_matches(['-', '+']).split_whitespace().next().unwrap_or_default();
        if !["if", "elif", "else", "endif", "for", "endfor"].contains(&word.trim_end_matches(['-', '+', '%', '}'])) {
            return Err(format!("`{{% {word} %}}` is not supported; `if` and `for` are"));
        }
    }
    if text.contains("indent") {
        return Err("the filter `indent` is not supported".to_owned());
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
    // Remove global functions: if a parameter named `range` is omitted, `range` must not be the function.
    let globals: Vec<String> = environment.globals().map(|(name, _)| name.to_owned()).collect();
    for name in globals {
        environment.remove_global(&name);
    }
    environment
}

/// Returns the message of an error, without the library's prefix.
fn explain(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests;
