//! Derives the argument for a parameter from its OpenAPI style, which defines how the value is serialised.

use serde_json::{Value, json};

use super::Parameter;
use crate::openapi::Obstacle;
use crate::openapi::schema::{Converter, without_null};
use crate::openapi::text::{clean, sentence};

/// Maximum length of a parameter description in characters.
const MAX_DESCRIPTION: usize = 400;

/// How the value of a parameter is serialised.
pub(super) enum Form {
    /// As one argument with this schema. In a query, a list repeats the name of the parameter.
    Plain(Value),
    /// As one query entry for each property: name, schema, and whether the property is required.
    Spread(Vec<(String, Value, bool)>),
}

impl<'d> Parameter<'d> {
    /// Returns how the parameter is serialised, or why it cannot be.
    pub(super) fn form(&self, converter: &mut Converter<'_, 'd>) -> Result<Result<Form, String>, Obstacle> {
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
            // Templates write an object as JSON, but repeat a list in a query, and reject both in a path.
            let kept = self.location == "header" || !list && (!object || self.location == "query");
            return Ok(Ok(Form::Plain(if kept { schema } else { written(&schema, "Written as JSON.") })));
        }
        let style = self.fields.get("style").and_then(Value::as_str);
        let explode = self.fields.get("explode").and_then(Value::as_bool);
        let form = match (self.location, style) {
            ("path", Some("label" | "matrix")) => Err(format!("has the unsupported style `{}`", style.unwrap_or_default())),
            ("path" | "header", _) if object => Err("is an object, which is not supported there".into()),
            ("path" | "header", _) if list => Ok(Form::Plain(separated(&schema, &opened, "commas"))),
            ("query", _) if object => self.spread(&opened, style.unwrap_or("form"), explode),
            ("query", Some("spaceDelimited")) if list && explode != Some(true) => Ok(Form::Plain(separated(&schema, &opened, "spaces"))),
            ("query", Some("pipeDelimited")) if list && explode != Some(true) => Ok(Form::Plain(separated(&schema, &opened, "`|`"))),
            ("query", None | Some("form")) if list && explode == Some(false) => Ok(Form::Plain(separated(&schema, &opened, "commas"))),
            ("query", _) if list && opened.get("items").is_some_and(|items| may_be(converter.opened(items), "object")) => {
                Err("is a list of objects, which is not supported there".into())
            }
            _ => Ok(Form::Plain(schema)),
        };
        Ok(form)
    }

    /// Returns the query entries for an object, one for each property that is not an object.
    fn spread(&self, schema: &Value, style: &str, explode: Option<bool>) -> Result<Form, String> {
        let deep = style == "deepObject";
        let properties = schema.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty());
        let Some(properties) = properties.filter(|_| deep || (style == "form" && explode != Some(false))) else {
            return Err("is an object, which is not supported there".into());
        };
        let required = schema.get("required").and_then(Value::as_array);
        let spread = properties.iter().filter(|(_, property)| !may_be(property, "object")).map(|(name, property)| {
            let key = if deep { format!("{}[{name}]", self.name) } else { name.clone() };
            let needed = self.required && required.is_some_and(|required| required.iter().any(|required| required == name));
            (key, without_null(property.clone()), needed)
        });
        Ok(Form::Spread(spread.collect()))
    }

    /// Returns the schema with the description of the parameter, which is more specific than that of the type.
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

/// Returns whether the schema names a type as allowed, directly or in a combination.
fn may_be(schema: &Value, kind: &str) -> bool {
    let named = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == kind),
        Some(name) => name == kind,
        None => kind == "object" && schema.get("properties").is_some(),
    };
    let choices = ["anyOf", "oneOf", "allOf"].iter().filter_map(|keyword| schema.get(*keyword).and_then(Value::as_array)).flatten();
    named || choices.into_iter().any(|choice| may_be(choice, kind))
}

/// Returns the schema of a string argument with separated values. It replaces a list, because templates can only repeat a list.
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
