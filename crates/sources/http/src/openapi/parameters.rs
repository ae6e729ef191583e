//! Converts the parameters of an operation to arguments and to templates for path, query and headers.

mod form;

use serde_json::{Map, Value, json};

use self::form::Form;
use super::Obstacle;
use super::arguments::{Arguments, Location};
use super::document::{Document, Operation, shown};
use super::schema::Converter;
use super::servers;
use crate::definition::{Auth, OpenApiDefinition};
use crate::plan::FORBIDDEN;

/// Maximum number of parameters of an operation.
const MAX_PARAMETERS: usize = 200;
/// Headers that are not parameters: those that OpenAPI excludes, and cookies. See also [`FORBIDDEN`].
const NOT_PARAMETERS: [&str; 4] = ["accept", "content-type", "authorization", "cookie"];

/// The templates that put arguments into a request.
#[derive(Default)]
pub(super) struct RequestTemplates {
    /// The templates of path variables, by name.
    pub path: Map<String, Value>,
    pub query: Map<String, Value>,
    pub headers: Vec<(String, String)>,
    /// Notes on what was omitted.
    pub notes: Vec<String>,
}

struct Parameter<'d> {
    name: &'d str,
    location: &'d str,
    required: bool,
    fields: &'d Map<String, Value>,
}

/// Converts the parameters of an operation to arguments.
pub(super) fn place<'d>(
    definition: &OpenApiDefinition,
    document: &Document<'d>,
    operation: &Operation<'d>,
    converter: &mut Converter<'_, 'd>,
    arguments: &mut Arguments,
) -> Result<RequestTemplates, Obstacle> {
    let parameters = effective(document, operation)?;
    let mut templates = RequestTemplates::default();
    for variable in servers::variables(operation.path)? {
        let declared = parameters.iter().find(|parameter| parameter.location == "path" && parameter.name == variable);
        let schema = match declared {
            None => json!({"type": "string"}),
            Some(parameter) => match parameter.form(converter)? {
                Ok(Form::Plain(schema)) => schema,
                Ok(Form::Spread(_)) => return Err(format!("its path parameter `{}` is an object", shown(variable)).into()),
                Err(why) => return Err(format!("its path parameter `{}` {why}", shown(variable)).into()),
            },
        };
        let template = arguments.add(variable, Location::Path, schema, true);
        templates.path.insert(variable.to_owned(), json!(template));
    }
    for parameter in parameters.iter().filter(|parameter| parameter.location != "path" && !parameter.is_set_elsewhere(definition)) {
        let form = match parameter.obstacle() {
            Some(why) => Err(why),
            None => parameter.form(converter)?,
        };
        match form {
            Ok(form) => templates.add(parameter, form, arguments),
            Err(why) => {
                let (location, name) = (shown(parameter.location), shown(parameter.name));
                if parameter.required {
                    return Err(format!("its {location} parameter `{name}` {why}").into());
                }
                templates.notes.push(format!("The {location} parameter `{name}` was omitted: it {why}."));
            }
        }
    }
    Ok(templates)
}

impl RequestTemplates {
    /// Adds a query or header parameter.
    fn add(&mut self, parameter: &Parameter<'_>, form: Form, arguments: &mut Arguments) {
        match form {
            Form::Plain(schema) if parameter.location == "header" => {
                let template = arguments.add(parameter.name, Location::Header, schema, parameter.required);
                self.headers.push((parameter.name.to_owned(), template));
            }
            Form::Plain(schema) => {
                let template = arguments.add(parameter.name, Location::Query, schema, parameter.required);
                self.query.insert(parameter.name.to_owned(), json!(template));
            }
            Form::Spread(properties) => {
                for (name, schema, required) in properties {
                    if self.query.contains_key(&name) {
                        self.notes.push(format!("The query parameter `{}` was omitted: two parameters have this name.", shown(&name)));
                        continue;
                    }
                    let template = arguments.add(&name, Location::Query, schema, required);
                    self.query.insert(name, json!(template));
                }
            }
        }
    }
}

/// Returns the parameters of an operation. Parameters of the operation override those of its path with the same name and location.
fn effective<'d>(document: &Document<'d>, operation: &Operation<'d>) -> Result<Vec<Parameter<'d>>, String> {
    let mut found: Vec<Parameter<'d>> = Vec::new();
    for level in [operation.shared, operation.fields] {
        for value in level.get("parameters").and_then(Value::as_array).into_iter().flatten() {
            let fields = document.follow(value)?.as_object().ok_or("one of its parameters is not an object")?;
            let text = |field: &str| fields.get(field).and_then(Value::as_str);
            let (Some(name), Some(location)) = (text("name"), text("in")) else {
                return Err("one of its parameters has no `name` or no `in`".into());
            };
            let parameter = Parameter { name, location, required: fields.get("required") == Some(&Value::Bool(true)), fields };
            let same = |known: &&mut Parameter<'d>| {
                known.location == location && (known.name == name || location == "header" && known.name.eq_ignore_ascii_case(name))
            };
            match found.iter_mut().find(same) {
                Some(known) => *known = parameter,
                None => found.push(parameter),
            }
            if found.len() > MAX_PARAMETERS {
                return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
            }
        }
    }
    Ok(found)
}

impl Parameter<'_> {
    /// Returns whether the definition, the credentials or the HTTP client set the value.
    fn is_set_elsewhere(&self, definition: &OpenApiDefinition) -> bool {
        let same = |name: &String| name.eq_ignore_ascii_case(self.name);
        let (header, query) = match &definition.auth_method {
            Some(Auth::ApiKey { header, query, .. }) => (header.as_ref(), query.as_ref()),
            _ => (None, None),
        };
        match self.location {
            "header" => {
                let name = self.name.to_ascii_lowercase();
                NOT_PARAMETERS.contains(&name.as_str())
                    || FORBIDDEN.contains(&name.as_str())
                    || definition.headers.keys().any(same)
                    || header.is_some_and(same)
            }
            "query" => query.is_some_and(|query| query == self.name),
            _ => false,
        }
    }

    /// Returns why the parameter cannot be sent, or `None` if it can.
    fn obstacle(&self) -> Option<String> {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        match self.location {
            "query" => None,
            "header" if !self.name.is_empty() && self.name.bytes().all(token) => None,
            "header" => Some("is not a valid header name".into()),
            _ => Some("has an unsupported location".into()),
        }
    }
}
