//! Converts a request body to one argument for each property if possible, otherwise to a single argument.

use serde_json::{Map, Value, json};

use super::Obstacle;
use super::arguments::{Arguments, Location, identifier};
use super::document::{Document, Operation, shown};
use super::schema::Converter;
use crate::definition::BodyFormat;

/// The body of a tool's requests.
#[derive(Default)]
pub(super) struct Body {
    pub value: Option<Value>,
    pub format: BodyFormat,
    /// The `Content-Type` header, if the format does not determine it.
    pub content_type: Option<String>,
    /// A note on what was omitted.
    pub note: Option<String>,
}

/// Converts the body of an operation to arguments.
pub(super) fn place<'d>(
    document: &Document<'d>,
    operation: &Operation<'d>,
    converter: &mut Converter<'_, 'd>,
    arguments: &mut Arguments,
) -> Result<Body, Obstacle> {
    let Some(request) = operation.fields.get("requestBody") else { return Ok(Body::default()) };
    let request = document.follow(request)?;
    let content = request.get("content").and_then(Value::as_object).filter(|content| !content.is_empty());
    let Some(content) = content else { return Ok(Body::default()) };
    let required = request.get("required") == Some(&Value::Bool(true));
    if operation.reads() {
        if required {
            return Err(format!("a {} request cannot have a body", operation.verb).into());
        }
        let note = format!("The body was omitted: {} requests have no body.", operation.verb);
        return Ok(Body { note: Some(note), ..Body::default() });
    }
    let (media, format, kind) = choose(content)?;
    let schema = match media.get("schema") {
        Some(schema) if format != BodyFormat::Text => converter.convert(schema)?,
        _ if format == BodyFormat::Text => json!({"type": "string"}),
        _ => json!({}),
    };
    let content_type =
        (!matches!(kind, "application/json" | "application/x-www-form-urlencoded" | "text/plain" | "*/*")).then(|| kind.to_owned());
    let value = match parts(converter.opened(&schema), arguments) {
        Some(parts) => {
            let template = |(name, schema, required): (String, Value, bool)| {
                let template = arguments.add(&name, Location::Body, schema, required);
                (name, json!(template))
            };
            Value::Object(parts.into_iter().map(template).collect())
        }
        None => json!(arguments.add("body", Location::Body, whole(schema, request), required)),
    };
    Ok(Body { value: Some(value), format, content_type, note: None })
}

/// Returns the preferred media type, its format and its name. Fails if no media type is supported.
fn choose<'d>(content: &'d Map<String, Value>) -> Result<(&'d Value, BodyFormat, &'d str), String> {
    type Fits = fn(&str) -> bool;
    let wanted: [(Fits, BodyFormat); 4] = [
        (|kind| matches!(kind, "application/json" | "*/*" | "application/*"), BodyFormat::Json),
        (|kind| kind.ends_with("+json"), BodyFormat::Json),
        (|kind| kind == "application/x-www-form-urlencoded", BodyFormat::Form),
        (|kind| kind.starts_with("text/"), BodyFormat::Text),
    ];
    let bare = |kind: &'d str| kind.split(';').next().unwrap_or_default().trim();
    for (fits, format) in wanted {
        let found = content.iter().map(|(kind, media)| (bare(kind), media)).find(|(kind, _)| fits(&kind.to_ascii_lowercase()));
        if let Some((kind, media)) = found {
            let kind = if kind.contains('*') { "*/*" } else { kind };
            // The media type is sent as a header, so it must not contain other characters.
            let sendable = |byte: u8| byte.is_ascii_graphic() && !b"{}\"".contains(&byte);
            return if kind.bytes().all(sendable) { Ok((media, format, kind)) } else { Err("its body has an invalid media type".into()) };
        }
    }
    let kinds: Vec<String> = content.keys().take(3).map(|kind| shown(kind)).collect();
    Err(format!("its body has the unsupported media type {}; JSON, forms and text are supported", kinds.join(" or ")))
}

/// Returns the properties of a body as name, schema, and whether the property is required. Returns `None` if the schema has other
/// keywords, or a property conflicts with another argument.
fn parts(schema: &Value, arguments: &Arguments) -> Option<Vec<(String, Value, bool)>> {
    let fields = schema.as_object()?;
    let properties = fields.get("properties")?.as_object().filter(|properties| !properties.is_empty())?;
    let plain = fields.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value == "object",
        "additionalProperties" => *value == Value::Bool(false),
        "properties" | "required" | "description" => true,
        _ => false,
    });
    let mut names: Vec<String> = properties.keys().map(|name| identifier(name, Location::Body)).collect();
    let clash = names.iter().any(|name| arguments.has(name));
    names.sort_unstable();
    if !plain || clash || names.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let required = fields.get("required").and_then(Value::as_array);
    // A required property that is not listed could never be sent.
    if required.is_some_and(|required| required.iter().any(|name| name.as_str().is_none_or(|name| !properties.contains_key(name)))) {
        return None;
    }
    let needed = |name: &String| required.is_some_and(|required| required.iter().any(|required| required == name));
    Some(properties.iter().map(|(name, schema)| (name.clone(), schema.clone(), needed(name))).collect())
}

/// Returns the schema of the body as a single argument, with a description.
fn whole(mut schema: Value, request: &Value) -> Value {
    let description = request.get("description").and_then(Value::as_str).unwrap_or("The body of the request.");
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("description").or_insert_with(|| json!(super::text::clean(description, 400)));
    }
    schema
}
