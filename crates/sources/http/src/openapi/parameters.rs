//! Parameters of an operation as arguments, and the templates that put them into path, query and headers.

mod form;

use serde_json::{Map, Value, json};

use self::form::Form;
use super::Obstacle;
use super::arguments::{Arguments, Place};
use super::document::{Document, Operation, shown};
use super::schema::Converter;
use super::servers;
use crate::definition::{Auth, OpenApiDefinition};
use crate::plan::FORBIDDEN;

/// Parameters of one operation.
const MAX_PARAMETERS: usize = 200;
/// Headers that OpenAPI says are no parameters, and cookies, which belong to no call. See also [`FORBIDDEN`].
const NOT_PARAMETERS: [&str; 4] = ["accept", "content-type", "authorization", "cookie"];

/// Where the arguments of one tool go.
#[derive(Default)]
pub(super) struct Placed {
    /// Templates by the variable of the path.
    pub path: Map<String, Value>,
    pub query: Map<String, Value>,
    pub headers: Vec<(String, String)>,
    /// What was left out.
    pub notes: Vec<String>,
}

struct Parameter<'d> {
    name: &'d str,
    place: &'d str,
    required: bool,
    fields: &'d Map<String, Value>,
}

/// Turns the parameters of an operation into arguments.
pub(super) fn place<'d>(
    definition: &OpenApiDefinition,
    document: &Document<'d>,
    operation: &Operation<'d>,
    converter: &mut Converter<'_, 'd>,
    arguments: &mut Arguments,
) -> Result<Placed, Obstacle> {
    let parameters = effective(document, operation)?;
    let mut placed = Placed::default();
    for variable in servers::variables(operation.path)? {
        let declared = parameters.iter().find(|parameter| parameter.place == "path" && parameter.name == variable);
        let schema = match declared {
            None => json!({"type": "string"}),
            Some(parameter) => match parameter.form(converter)? {
                Ok(Form::Plain(schema)) => schema,
                Ok(Form::Spread(_)) => return Err(format!("its path parameter `{}` is an object", shown(variable)).into()),
                Err(why) => return Err(format!("its path parameter `{}` {why}", shown(variable)).into()),
            },
        };
        let template = arguments.add(variable, Place::Path, schema, true);
        placed.path.insert(variable.to_owned(), json!(template));
    }
    for parameter in parameters.iter().filter(|parameter| parameter.place != "path") {
        if parameter.is_given_otherwise(definition) {
            continue;
        }
        let form = match parameter.obstacle() {
            Some(why) => Err(why),
            None => parameter.form(converter)?,
        };
        match form {
            Ok(Form::Plain(schema)) if parameter.place == "header" => {
                let template = arguments.add(parameter.name, Place::Header, schema, parameter.required);
                placed.headers.push((parameter.name.to_owned(), template));
            }
            Ok(Form::Plain(schema)) => {
                let template = arguments.add(parameter.name, Place::Query, schema, parameter.required);
                placed.query.insert(parameter.name.to_owned(), json!(template));
            }
            Ok(Form::Spread(properties)) => {
                for (name, schema, required) in properties {
                    if placed.query.contains_key(&name) {
                        placed.notes.push(format!("The query parameter `{}` was left out: there are two of this name.", shown(&name)));
                        continue;
                    }
                    let template = arguments.add(&name, Place::Query, schema, required);
                    placed.query.insert(name, json!(template));
                }
            }
            Err(why) if parameter.required => {
                return Err(format!("its {} parameter `{}` {why}", shown(parameter.place), shown(parameter.name)).into());
            }
            Err(why) => {
                placed.notes.push(format!("The {} parameter `{}` was left out: it {why}.", shown(parameter.place), shown(parameter.name)));
            }
        }
    }
    Ok(placed)
}

/// The parameters of the path and of the operation, which replaces those of the same name and place.
fn effective<'d>(document: &Document<'d>, operation: &Operation<'d>) -> Result<Vec<Parameter<'d>>, String> {
    let mut found: Vec<Parameter<'d>> = Vec::new();
    for level in [operation.shared, operation.fields] {
        for value in level.get("parameters").and_then(Value::as_array).into_iter().flatten() {
            let fields = document.follow(value)?.as_object().ok_or("one of its parameters is not a map")?;
            let text = |field: &str| fields.get(field).and_then(Value::as_str);
            let (Some(name), Some(place)) = (text("name"), text("in")) else {
                return Err("one of its parameters has no `name` or no `in`".into());
            };
            let parameter = Parameter { name, place, required: fields.get("required") == Some(&Value::Bool(true)), fields };
            let same = |known: &&mut Parameter<'d>| {
                known.place == place && (known.name == name || place == "header" && known.name.eq_ignore_ascii_case(name))
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
    /// Whether the definition, or HTTP itself, already says what is sent.
    fn is_given_otherwise(&self, definition: &OpenApiDefinition) -> bool {
        let same = |name: &String| name.eq_ignore_ascii_case(self.name);
        let (header, query) = match &definition.auth_method {
            Some(Auth::ApiKey { header, query, .. }) => (header.as_ref(), query.as_ref()),
            _ => (None, None),
        };
        match self.place {
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

    /// Why it cannot be sent at all.
    fn obstacle(&self) -> Option<String> {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        match self.place {
            "query" => None,
            "header" if !self.name.is_empty() && self.name.bytes().all(token) => None,
            "header" => Some("is not the name of a header".into()),
            _ => Some("cannot be sent by a tool".into()),
        }
    }
}
