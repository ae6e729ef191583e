//! Parameters of an operation as arguments, and the templates that put them into path, query and headers.

use serde_json::{Map, Value, json};

use super::Obstacle;
use super::arguments::{Arguments, Place};
use super::document::{Document, Operation, shown};
use super::schema::{Converter, without_null};
use super::servers;
use super::text::{clean, sentence};
use crate::definition::{Auth, OpenApiDefinition};

/// Parameters of one operation.
const MAX_PARAMETERS: usize = 200;
/// Characters of the description of a parameter.
const MAX_DESCRIPTION: usize = 400;
/// Headers that are no parameters: OpenAPI says so of the first three, and the others belong to the connection.
const NOT_PARAMETERS: [&str; 9] = [
    "accept", "content-type", "authorization", "connection", "content-length", "cookie", "host", "transfer-encoding", "upgrade",
];

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

/// How a value is written.
enum Form {
    /// As it is; a list repeats the name in a query.
    Plain(Value),
    /// Each property by itself: the name in the query, its schema, whether it is required.
    Spread(Vec<(String, Value, bool)>),
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

impl<'d> Parameter<'d> {
    /// Whether the definition, or HTTP itself, already says what is sent.
    fn is_given_otherwise(&self, definition: &OpenApiDefinition) -> bool {
        let same = |name: &String| name.eq_ignore_ascii_case(self.name);
        let (header, query) = match &definition.auth_method {
            Some(Auth::ApiKey { header, query, .. }) => (header.as_ref(), query.as_ref()),
            _ => (None, None),
        };
        match self.place {
            "header" => {
                NOT_PARAMETERS.contains(&self.name.to_ascii_lowercase().as_str())
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
            "cookie" => Some("is a cookie, and tools send none".into()),
            _ => Some("is sent in a way that is not known".into()),
        }
    }

    /// How it is written, or why it cannot be.
    fn form(&self, converter: &mut Converter<'_, 'd>) -> Result<Result<Form, String>, Obstacle> {
        let (schema, as_json) = match (self.fields.get("schema"), self.fields.get("content").and_then(Value::as_object)) {
            (Some(schema), _) => (without_null(converter.convert(schema)?), false),
            (None, Some(content)) => match content.values().next().and_then(|media| media.get("schema")) {
                Some(schema) => (without_null(converter.convert(schema)?), true),
                None => (json!({"type": "string"}), true),
            },
            (None, None) => (json!({"type": "string"}), false),
        };
        let opened = converter.opened(&schema).clone();
        let (list, object) = (may_be(&opened, "array"), may_be(&opened, "object"));
        let schema = self.described(schema);
        if as_json {
            let text = list || object;
            return Ok(Ok(Form::Plain(if text { written(&schema, "Written as JSON.") } else { schema })));
        }
        let style = self.fields.get("style").and_then(Value::as_str);
        let explode = self.fields.get("explode").and_then(Value::as_bool);
        let form = match (self.place, style) {
            ("path", Some("label" | "matrix")) => Err(format!("has the style `{}`, which is not supported", style.unwrap_or_default())),
            ("path" | "header", _) if object => Err("is an object, which has no common form there".into()),
            ("path" | "header", _) if list => Ok(Form::Plain(separated(&schema, &opened, "commas"))),
            ("query", _) if object => self.spread(&opened, style.unwrap_or("form"), explode),
            ("query", Some("spaceDelimited")) if list && explode != Some(true) => Ok(Form::Plain(separated(&schema, &opened, "spaces"))),
            ("query", Some("pipeDelimited")) if list && explode != Some(true) => Ok(Form::Plain(separated(&schema, &opened, "`|`"))),
            ("query", None | Some("form")) if list && explode == Some(false) => Ok(Form::Plain(separated(&schema, &opened, "commas"))),
            ("query", _) if list && opened.get("items").is_some_and(|items| may_be(converter.opened(items), "object")) => {
                Err("is a list of objects, which has no common form there".into())
            }
            _ => Ok(Form::Plain(schema)),
        };
        Ok(form)
    }

    /// An object in a query, property by property.
    fn spread(&self, schema: &Value, style: &str, explode: Option<bool>) -> Result<Form, String> {
        let deep = style == "deepObject";
        let properties = schema.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty());
        let Some(properties) = properties.filter(|_| deep || (style == "form" && explode != Some(false))) else {
            return Err("is an object, which has no common form there".into());
        };
        let required = schema.get("required").and_then(Value::as_array);
        let spread = properties.iter().filter(|(_, property)| !may_be(property, "object")).map(|(name, property)| {
            let key = if deep { format!("{}[{name}]", self.name) } else { name.clone() };
            let needed = self.required && required.is_some_and(|required| required.iter().any(|required| required == name));
            (key, without_null(property.clone()), needed)
        });
        Ok(Form::Spread(spread.collect()))
    }

    /// The schema with the words of the parameter, which say more than those of its type.
    fn described(&self, mut schema: Value) -> Value {
        let words = clean(self.fields.get("description").and_then(Value::as_str).unwrap_or_default(), MAX_DESCRIPTION);
        let Some(fields) = schema.as_object_mut().filter(|_| !words.is_empty()) else { return schema };
        let default = fields.get("description").and_then(Value::as_str).and_then(|known| known.rsplit_once("Default: "));
        let words = match default {
            Some((_, default)) if !words.to_lowercase().contains("default") => format!("{} Default: {default}", sentence(&words)),
            _ => words,
        };
        fields.insert("description".into(), json!(words));
        schema
    }
}

/// Whether values of a type fit, as far as the schema says.
fn may_be(schema: &Value, kind: &str) -> bool {
    let named = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == kind),
        Some(name) => name == kind,
        None => kind == "object" && schema.get("properties").is_some(),
    };
    let choices = ["anyOf", "oneOf", "allOf"].iter().filter_map(|keyword| schema.get(*keyword).and_then(Value::as_array)).flatten();
    named || choices.into_iter().any(|choice| may_be(choice, kind))
}

/// A text argument instead of a list, because templates write a list only by repeating it.
fn separated(schema: &Value, opened: &Value, by: &str) -> Value {
    let options = opened.get("items").and_then(|items| items.get("enum")).and_then(Value::as_array);
    let options: Vec<String> =
        options.into_iter().flatten().map(|option| option.as_str().map_or_else(|| option.to_string(), str::to_owned)).collect();
    let mut note = format!("Several values are separated by {by}.");
    if !options.is_empty() && options.len() <= 50 {
        note = format!("{note} Each is one of: {}.", clean(&options.join(", "), MAX_DESCRIPTION));
    }
    written(schema, &note)
}

fn written(schema: &Value, note: &str) -> Value {
    let known = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    json!({"type": "string", "description": format!("{} {note}", sentence(known)).trim_start()})
}
