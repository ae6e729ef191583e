//! JSON that contains templates: a value in a query, or a body.

use std::collections::BTreeSet;

use helve_core::ToolError;
use helve_core::authored::FieldError;
use serde_json::{Map, Value};

use crate::template::{Template, TemplateError, Variables};

/// JSON whose strings are templates. Keys are literal.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// A constant value.
    Fixed(Value),
    /// A template, and the JSON pointer of its field in the file.
    Template(Template, String),
    /// A list of values.
    List(Vec<Shape>),
    /// An object with literal keys.
    Object(Vec<(String, Shape)>),
}

impl Shape {
    /// Parses the templates in a value. `path` is the JSON pointer of the value in the file.
    pub(crate) fn read(value: &Value, path: &str) -> Result<Self, FieldError> {
        Ok(match value {
            Value::String(text) => {
                let template = Template::new(text).map_err(|why| broken(path, &why))?;
                if template.is_literal() { Self::Fixed(value.clone()) } else { Self::Template(template, path.to_owned()) }
            }
            Value::Array(items) => {
                let read = |(index, item)| Self::read(item, &format!("{path}/{index}"));
                Self::List(items.iter().enumerate().map(read).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let read = |(key, field): (&String, &Value)| Ok((key.clone(), Self::read(field, &join(path, key))?));
                Self::Object(fields.iter().map(read).collect::<Result<_, FieldError>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Fixed(value.clone()),
        })
    }

    /// Calls the visitor with every template and its JSON pointer.
    pub(crate) fn visit(&self, visitor: &mut dyn FnMut(&Template, &str)) {
        match self {
            Self::Fixed(_) => {}
            Self::Template(template, path) => visitor(template, path),
            Self::List(items) => items.iter().for_each(|item| item.visit(visitor)),
            Self::Object(fields) => fields.iter().for_each(|(_, field)| field.visit(visitor)),
        }
    }

    /// Fills in the arguments. Leaves out templates whose arguments are missing; returns `None` if that leaves no value.
    pub(crate) fn fill(&self, variables: &Variables) -> Result<Option<Value>, ToolError> {
        match self {
            Self::Fixed(value) => Ok(Some(value.clone())),
            Self::Template(template, path) => template.value(variables).map_err(|error| unfilled(&error, path, &template.names())),
            Self::List(items) => {
                let filled: Vec<Option<Value>> = items.iter().map(|item| item.fill(variables)).collect::<Result<_, _>>()?;
                Ok(Some(filled.into_iter().flatten().collect()))
            }
            Self::Object(fields) => {
                let mut filled = Map::new();
                for (key, field) in fields {
                    if let Some(value) = field.fill(variables)? {
                        filled.insert(key.clone(), value);
                    }
                }
                Ok(Some(Value::Object(filled)))
            }
        }
    }
}

/// Returns the error for an invalid template.
pub(crate) fn broken(path: &str, why: &str) -> FieldError {
    FieldError::new(path, format!("invalid template: {why}")).hint("write `{{ parameter }}`")
}

/// Returns the error for a template that cannot be filled in with the arguments `names`.
pub(crate) fn unfilled(error: &TemplateError, path: &str, names: &BTreeSet<String>) -> ToolError {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    ToolError::invalid_parameters(match error {
        TemplateError::Missing => format!("{path} of the request needs {names}"),
        TemplateError::Other(why) => format!("cannot fill {path} of the request with {names}: {why}"),
    })
}

/// Returns the JSON pointer of a field in the object at `path`.
pub(crate) fn join(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(shape: &Value, arguments: &Value) -> Result<Option<Value>, ToolError> {
        Shape::read(shape, "/body").expect("a shape").fill(&Variables::new(arguments))
    }

    #[test]
    fn types_are_kept_and_what_is_left_out_is_left_out() {
        let shape = json!({"a": "{{ a }}", "b": ["{{ b }}", "x{{ a }}", 1], "c": {"d": "{{ d }}"}, "e": null});
        let filled = fill(&shape, &json!({"a": 7}));
        assert_eq!(filled.expect("filled"), Some(json!({"a": 7, "b": ["x7", 1], "c": {}, "e": null})));
        assert_eq!(fill(&json!("{{ a }}"), &json!({})).expect("filled"), None);
    }

    #[test]
    fn mistakes_have_a_place() {
        let error = Shape::read(&json!({"a": [{"b/c": "{{ x"}]}), "/body").expect_err("a mistake");
        assert_eq!(error.path, "/body/a/0/b~1c");
        let error = fill(&json!({"a": "x{{ b }}"}), &json!({})).expect_err("a mistake");
        assert_eq!(error.message(), "/body/a of the request needs `b`");
    }
}
