//! Texts with `{{ … }}` in them. They are written by whoever wrote the tool; what is put into them comes from a model
//! or a server, and is never read as a template again.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Expression, UndefinedBehavior};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Steps that one template may take: enough for a list of a few thousand entries.
const FUEL: u64 = 200_000;
/// How long the result of a template may be.
const MAX_OUTPUT: usize = 16 << 20;
/// Filters that can make a text of any length.
const UNBOUNDED: [&str; 2] = ["format", "indent"];
/// What may stand unencoded in a path or query.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

static PLAIN: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Writing::Plain));
static PATH: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Writing::Path));
static QUERY: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Writing::Query));
static PROBE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment(Writing::Plain);
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment
});

/// How values are written between the words of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    /// As they are; what is not text as JSON.
    Plain,
    /// As a part of a path: percent-encoded, and never empty.
    Path,
    /// As a part of a query: percent-encoded.
    Query,
}

/// What a template may speak about.
pub(crate) struct Variables(minijinja::Value);

impl Variables {
    pub(crate) fn new(fields: &Value) -> Self {
        Self(minijinja::Value::from(Serde(fields)))
    }
}

/// A text that may have templates in it.
#[derive(Clone)]
pub(crate) struct Template(Kind);

#[derive(Clone)]
enum Kind {
    /// No template at all.
    Literal(Arc<str>),
    /// Nothing but one expression, which keeps its type.
    Value(Arc<Expression<'static, 'static>>),
    /// Words with values between them, compiled when it is used: that is little beside an HTTP request.
    Text(Arc<str>, Writing),
}

/// Why a template gave nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// It speaks about something that is not there.
    Missing,
    /// Anything else.
    Other(String),
}

impl Template {
    /// Reads a template whose values keep their type where it is nothing but one expression.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if !has_template(text) {
            return Ok(Self(Kind::Literal(text.into())));
        }
        let inside = trimmed.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        let compiled = inside.and_then(|inside| PLAIN.compile_expression_owned(inside.trim().to_owned()).ok());
        probe(text)?;
        match compiled {
            Some(expression) => Ok(Self(Kind::Value(Arc::new(expression)))),
            None => Self::text(text, Writing::Plain),
        }
    }

    /// Reads a template that gives text.
    pub(crate) fn text(text: &str, writing: Writing) -> Result<Self, String> {
        if !has_template(text) {
            return Ok(Self(Kind::Literal(text.into())));
        }
        writing.environment().template_from_named_str("template", text).map_err(|error| explain(&error))?;
        probe(text)?;
        Ok(Self(Kind::Text(text.into(), writing)))
    }

    /// The variables it speaks about.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let names = match &self.0 {
            Kind::Literal(_) => return BTreeSet::new(),
            Kind::Value(expression) => expression.undeclared_variables(false),
            Kind::Text(text, writing) => match writing.environment().template_from_named_str("template", text) {
                Ok(template) => template.undeclared_variables(false),
                Err(_) => return BTreeSet::new(),
            },
        };
        names.into_iter().collect()
    }

    /// Whether there is nothing to fill in.
    pub(crate) fn is_literal(&self) -> bool {
        matches!(self.0, Kind::Literal(_))
    }

    /// What it comes to; nothing where it is only an expression about something that is not there.
    pub(crate) fn value(&self, variables: &Variables) -> Result<Option<Value>, TemplateError> {
        match &self.0 {
            Kind::Literal(text) => Ok(Some(Value::from(&**text))),
            Kind::Text(..) => self.written(variables).map(|text| Some(Value::from(text))),
            Kind::Value(expression) => match expression.eval(variables.0.clone()) {
                Ok(value) if value.is_undefined() => Ok(None),
                Ok(value) => serde_json::to_value(&value).map(Some).map_err(|error| TemplateError::Other(error.to_string())),
                Err(error) if error.kind() == ErrorKind::UndefinedError => Ok(None),
                Err(error) => Err(TemplateError::Other(explain(&error))),
            },
        }
    }

    /// What it comes to as text; nothing under the same condition.
    pub(crate) fn value_text(&self, variables: &Variables) -> Result<Option<String>, TemplateError> {
        Ok(self.value(variables)?.map(|value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        }))
    }

    /// What it comes to as text.
    pub(crate) fn written(&self, variables: &Variables) -> Result<String, TemplateError> {
        match &self.0 {
            Kind::Text(text, writing) => render(writing.environment(), text, variables.0.clone()).map_err(|error| match error.kind() {
                ErrorKind::UndefinedError => TemplateError::Missing,
                _ => TemplateError::Other(explain(&error)),
            }),
            _ => self.value_text(variables)?.ok_or(TemplateError::Missing),
        }
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A template may hold a secret from the environment.
        f.write_str("Template")
    }
}

/// Tries a template once with nothing at all, because filters and tests are looked up only then.
fn probe(text: &str) -> Result<(), String> {
    use ErrorKind::{UnknownFilter, UnknownTest};
    check_words(text)?;
    match render(&PROBE, text, minijinja::Value::from(())) {
        Err(error) if matches!(error.kind(), UnknownFilter | UnknownTest) => Err(explain(&error)),
        _ => Ok(()),
    }
}

/// Renders a template into a text that cannot grow without end.
fn render(environment: &Environment<'static>, text: &str, variables: minijinja::Value) -> Result<String, Error> {
    let mut output = Bounded(Vec::new());
    environment.template_from_named_str("template", text)?.render_captured_to(variables, &mut output)?;
    String::from_utf8(output.0).map_err(|_| Error::new(ErrorKind::InvalidOperation, "the result is not text"))
}

struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
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

/// Refuses what could build a text of any size before it is written: steps are counted, memory is not.
fn check_words(text: &str) -> Result<(), String> {
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

/// Whether a text has anything to fill in.
pub(crate) fn has_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

impl Writing {
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
                return Err(refused("only a text, a number or a boolean can stand in an address"));
            }
            None => serde_json::to_string(value).map_err(|_| refused("the value cannot be written"))?,
        };
        match self {
            Self::Plain => Ok(text),
            Self::Path if text.is_empty() => Err(refused("an empty text cannot be a part of a path")),
            Self::Path | Self::Query => Ok(utf8_percent_encode(&text, RESERVED).to_string()),
        }
    }
}

fn environment(writing: Writing) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    for filter in UNBOUNDED {
        environment.remove_filter(filter);
    }
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_formatter(move |out, _, value| out.write_str(&writing.write(value)?).map_err(Error::from));
    // A parameter may be called `range`, and is not the function when it is left out.
    let globals: Vec<String> = environment.globals().map(|(name, _)| name.to_owned()).collect();
    for name in globals {
        environment.remove_global(&name);
    }
    environment
}

/// The reason in an error, without the words that the library puts around it.
fn explain(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests;
